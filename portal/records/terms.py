"""The terms of a challenge: who has accepted which version, when, and of which text."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, Terms
from headstart.output.errors import UserError
from headstart.portal.records.accounts import digest
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.tables import AcceptanceRow, AccountRow


def missing_terms(session: Session, account_id: int, challenge: Challenge) -> Terms | None:
    """Return the terms of a challenge if a person must accept their version first."""
    terms = challenge.terms
    if terms is None:
        return None
    same = (AcceptanceRow.phase == challenge.name, AcceptanceRow.version == terms.version)
    accepted = session.scalar(select(AcceptanceRow.id).where(AcceptanceRow.account_id == account_id, *same))
    return terms if accepted is None else None


def accept_terms(database: Database, account_id: int, challenge: Challenge, version: str, now: datetime) -> None:
    """Record that a person accepts the terms of a challenge; once for each version.

    Raises:
        UserError: The version is not that of the terms.
    """
    terms = challenge.terms
    if terms is None or version != terms.version:
        there = "there are none" if terms is None else f"their version is {terms.version!r}"
        raise UserError(f"version: {version!r} is not the version of the terms; {there}")
    with database.writing() as session:
        # The lock serialises the requests of a person.
        query = select(AccountRow).where(AccountRow.id == account_id).with_for_update(of=AccountRow)
        account = session.scalars(query).one()
        if missing_terms(session, account_id, challenge) is None:
            return
        row = AcceptanceRow(account_id=account_id, phase=challenge.name, version=version, at=now)
        row.text_sha256 = digest(terms.text)
        session.add(row)
        message = f"{account.name} accepted version {version} of the terms of {challenge.name}."
        log_event(session, now, "terms accepted", message, account.team_id)

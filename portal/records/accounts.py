"""Participants: a name and a token, which organisers issue and revoke.

A token is 256 random bits, so its plain SHA-256 can be stored: salts and slow digests protect passwords of few bits.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.contract.names import TEXT_PATTERN, canonical_name
from headstart.output.errors import UserError
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.tables import AccountRow, TeamRow

MAX_NAME_LENGTH, MAX_CANONICAL_LENGTH = 64, 256
TOKEN_BYTES = 32


def add_team(database: Database, name: str) -> str:
    """Add a team.

    Args:
        database: The portal's database.
        name: One line of at most 64 visible characters; names that differ in case alone are the same.

    Returns:
        Its token, which is stored nowhere.

    Raises:
        UserError: The name is not valid, or another team has it.
    """
    is_visible = name.isprintable() and re.match(TEXT_PATTERN, name)
    # The compatible form of a single character has up to 18 letters.
    if (
        not 0 < len(name) <= MAX_NAME_LENGTH
        or not is_visible
        or name != name.strip()
        or len(canonical_name(name)) > MAX_CANONICAL_LENGTH
    ):
        raise UserError(
            f"name: {name!r} is not valid; give one line of 1 to {MAX_NAME_LENGTH} visible characters, without spaces "
            "at its ends"
        )

    token, now = secrets.token_urlsafe(TOKEN_BYTES), datetime.now(UTC)
    with database.writing() as session:
        other = session.scalar(select(TeamRow).where(TeamRow.canonical == canonical_name(name)))
        if other is not None:
            state = "" if other.revoked is None else ", whose token is revoked; `teams renew` gives it another"
            raise UserError(f"name: there is a team {other.name!r}{state}")

        row = TeamRow(name=name, canonical=canonical_name(name), added=now, approved=now)
        session.add(row)
        session.flush()
        session.add(AccountRow(team_id=row.id, name=name, token_sha256=_digest(token), added=now))
        log_event(session, now, "team added", f"The team {name} takes part.", team_id=row.id)
    return token


def renew_token(database: Database, name: str) -> str:
    """Replace a team's token, also a revoked one, and return the new one."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), datetime.now(UTC)
    with database.writing() as session:
        row = _find(session, name)
        row.revoked = None
        account = session.scalars(
            select(AccountRow).where(AccountRow.team_id == row.id).order_by(AccountRow.id)
        ).first()
        assert account is not None
        account.token_sha256, account.revoked = _digest(token), None
        log_event(session, now, "token renewed", f"The team {row.name} has another token.", team_id=row.id)
    return token


def revoke_token(database: Database, name: str) -> None:
    """Revoke a team's token at once; its submissions and scores stay."""
    now = datetime.now(UTC)
    with database.writing() as session:
        row = _find(session, name)
        row.revoked = row.revoked or now
        log_event(session, now, "token revoked", f"The team {row.name} may submit nothing more.", team_id=row.id)


def list_teams(database: Database) -> Sequence[TeamRow]:
    """Return all teams in the order in which they were added."""
    with database.reading() as session:
        return session.scalars(select(TeamRow).order_by(TeamRow.id)).all()


def find_account(database: Database, token: str) -> AccountRow | None:
    """Return the account of a token, with its team; None for an unknown or revoked one."""
    with database.reading() as session:
        # The query compares digests, so its time reveals nothing of the token.
        query = select(AccountRow).where(AccountRow.token_sha256 == _digest(token), AccountRow.revoked.is_(None))
        account = session.scalar(query)
    is_valid = account is not None and (account.team is None or account.team.revoked is None)
    return account if is_valid else None


def _find(session: Session, name: str) -> TeamRow:
    query = select(TeamRow).where(TeamRow.canonical == canonical_name(name))
    # Bytes of the command line that are no text cannot be part of a query.
    row = session.scalar(query) if name.isprintable() else None
    if row is None:
        raise UserError(f"name: there is no team {name!r}; `teams list` names all")
    return row


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

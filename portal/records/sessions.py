"""Browsers in which people are logged in, each by a random cookie."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from headstart.output.errors import UserError
from headstart.portal.records.accounts import digest, if_valid, new_secret
from headstart.portal.records.database import Database
from headstart.portal.records.tables import AccountRow, SessionRow

DURATION = timedelta(days=14)


def begin_session(session: Session, now: datetime, account: AccountRow) -> str:
    """Log a person in, remove all sessions that have run out, and return the cookie.

    Raises:
        UserError: Another request has renewed the person's token since the account was read.
    """
    token = select(AccountRow.token_sha256).where(AccountRow.id == account.id).with_for_update()
    if session.scalar(token) != account.token_sha256:
        raise UserError("token: it was renewed a moment ago; log in with the new one")
    cookie = new_secret()
    session.execute(delete(SessionRow).where(SessionRow.expires <= now))
    session.add(SessionRow(cookie_sha256=digest(cookie), account_id=account.id, begun=now, expires=now + DURATION))
    return cookie


def find_visitor(database: Database, cookie: str) -> AccountRow | None:
    """Return the account of a cookie, with its team; None where the session has ended or the account is revoked."""
    query = select(AccountRow).join(SessionRow, SessionRow.account_id == AccountRow.id)
    lasting = (SessionRow.cookie_sha256 == digest(cookie), SessionRow.expires > datetime.now(UTC))
    with database.reading() as session:
        return if_valid(session.scalar(query.where(*lasting)))


def end_session(database: Database, cookie: str) -> None:
    """Log a person out of one browser."""
    with database.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.cookie_sha256 == digest(cookie)))

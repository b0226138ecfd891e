"""Teams: a name and a token, which organisers issue and revoke.

A token is 256 random bits, so that its plain SHA-256 can be kept: what makes passwords hard to guess from a digest, a
salt and a slow function, is for secrets of few bits.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.contract.names import TEXT_PATTERN, canonical_name
from headstart.output.errors import UserError
from headstart.portal.database import Database, TeamRow, record

LONGEST_TEAM, LONGEST_FORM = 64, 256
TOKEN_BYTES = 32


@dataclass(frozen=True)
class Team:
    """A participant who has proved the name.

    Attributes:
        id: Its number in the database.
        name: Its name.
    """

    id: int
    name: str


def add_team(database: Database, name: str) -> str:
    """Add a team.

    Args:
        database: The portal's.
        name: One line of at most 64 characters that can be seen; names that differ in case alone are the same.

    Returns:
        Its token, which is kept nowhere.

    Raises:
        UserError: The name cannot be one, or is another team's.
    """
    seen = name.isprintable() and re.match(TEXT_PATTERN, name)
    # Of some characters the compatible forms are up to 18 letters.
    if (
        not 0 < len(name) <= LONGEST_TEAM
        or not seen
        or name != name.strip()
        or len(canonical_name(name)) > LONGEST_FORM
    ):
        raise UserError(
            f"name: {name!r} is none; give one line of 1 to {LONGEST_TEAM} characters that can be seen, without spaces "
            "at its ends"
        )
    token, now = secrets.token_urlsafe(TOKEN_BYTES), datetime.now(UTC)
    with database.writing() as session:
        there = session.scalar(select(TeamRow).where(TeamRow.canonical == canonical_name(name)))
        if there is not None:
            state = "" if there.revoked is None else ", whose token is revoked; `teams renew` gives it another"
            raise UserError(f"name: there is a team {there.name!r}{state}")
        row = TeamRow(name=name, canonical=canonical_name(name), token_sha256=_digest(token), added=now)
        session.add(row)
        session.flush()
        record(session, now, "team added", f"The team {name} takes part.", team_id=row.id)
    return token


def renew_token(database: Database, name: str) -> str:
    """Give a team another token in place of the one that it has or had, and return it."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), datetime.now(UTC)
    with database.writing() as session:
        row = _find(session, name)
        row.token_sha256, row.revoked = _digest(token), None
        record(session, now, "token renewed", f"The team {row.name} has another token.", team_id=row.id)
    return token


def revoke_token(database: Database, name: str) -> None:
    """End a team's token at once; its submissions and scores stay."""
    now = datetime.now(UTC)
    with database.writing() as session:
        row = _find(session, name)
        row.revoked = row.revoked or now
        record(session, now, "token revoked", f"The team {row.name} may hand in nothing more.", team_id=row.id)


def list_teams(database: Database) -> Sequence[TeamRow]:
    """Give all teams in the order in which they were added."""
    with database.reading() as session:
        return session.scalars(select(TeamRow).order_by(TeamRow.id)).all()


def find_team(database: Database, token: str) -> Team | None:
    """Tell whose token it is; None where it is nobody's, or was revoked."""
    with database.reading() as session:
        # What is compared is a digest, so that how long that takes says nothing of the token.
        query = select(TeamRow.id, TeamRow.name).where(
            TeamRow.token_sha256 == _digest(token), TeamRow.revoked.is_(None)
        )
        row = session.execute(query).one_or_none()
    return None if row is None else Team(row.id, row.name)


def _find(session: Session, name: str) -> TeamRow:
    query = select(TeamRow).where(TeamRow.canonical == canonical_name(name))
    # Bytes of the command line that are no text cannot be asked for.
    row = session.scalar(query) if name.isprintable() else None
    if row is None:
        raise UserError(f"name: there is no team {name!r}; `teams list` names all")
    return row


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

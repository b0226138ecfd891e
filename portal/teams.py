"""Teams and their tokens, which programs send and browsers keep.

A token is 256 random bits, so its plain SHA-256 can be stored: salts and slow digests protect passwords of few bits.
"""

import hashlib
import secrets
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.contract.names import canonical_name
from headstart.output.errors import UserError
from headstart.portal.database import Database
from headstart.portal.tables import TeamRow, log_event

TOKEN_BYTES = 32
MAX_NAME_LENGTH = 64


def add_team(session: Session, name: str) -> str:
    """Add a team, or let a revoked one in again.

    Returns:
        Its new token, which is stored nowhere.

    Raises:
        UserError: The name is not valid, or a team that is not revoked has it.
    """
    if not (name.isprintable() and name == name.strip() and 0 < len(name) <= MAX_NAME_LENGTH):
        raise UserError(f"name: {name!r} is not valid; give one line of 1 to {MAX_NAME_LENGTH} visible characters")

    token, canonical = secrets.token_urlsafe(TOKEN_BYTES), canonical_name(name)
    team = session.scalar(select(TeamRow).where(TeamRow.canonical == canonical).with_for_update())
    if team is None:
        team = TeamRow(name=name, canonical=canonical, added=datetime.now(UTC))
        session.add(team)
    elif team.revoked is None:
        raise UserError(f"name: there is a team {team.name!r}; for another token, run `teams revoke` first")

    team.token_sha256, team.revoked = digest(token), None
    session.flush()
    log_event(session, "team added", f"The team {team.name} takes part.", team)
    return token


def find_team(session: Session, name: str) -> TeamRow:
    """Return the team of a name, locked; a UserError if there is none."""
    # The lock lets others write lines of the log about the team. Bytes that are no text cannot be part of a query.
    same = TeamRow.canonical == canonical_name(name[:MAX_NAME_LENGTH])
    query = select(TeamRow).where(same).with_for_update(key_share=True)
    team = session.scalar(query) if name.isprintable() else None
    if team is None:
        raise UserError(f"name: there is no team {name!r}; `teams list` names all")
    return team


def digest(secret: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find_by_token(database: Database, token: str) -> TeamRow | None:
    """Return the team of a token; None for an unknown or revoked one."""
    # The query compares digests, so its time reveals nothing of the token.
    query = select(TeamRow).where(TeamRow.token_sha256 == digest(token), TeamRow.revoked.is_(None))
    with database.reading() as session:
        return session.scalar(query)

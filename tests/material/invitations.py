"""Invitations to the teams of a test."""

from datetime import UTC, datetime

from sqlalchemy import select

from headstart.portal.records.accounts import Keys, find_team
from headstart.portal.records.database import Database
from headstart.portal.records.invitations import find_invitation, invite, use_invitation
from headstart.portal.records.tables import EventRow

NOW = datetime.now(UTC)


def make_invitation(database: Database, team: str | None, email: str = "") -> str:
    with database.writing() as session:
        return invite(session, NOW, find_team(session, team) if team else None, "a test", email=email)


def join(database: Database, code: str, name: str, team: str = "", at: datetime = NOW) -> Keys | None:
    with database.writing() as session:
        invitation = find_invitation(session, at, code=code)
        return None if invitation is None else use_invitation(session, at, invitation, name, team)[1]


def log(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(EventRow.kind).order_by(EventRow.id)))

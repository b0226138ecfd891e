"""The log: what happened at the portal, in sentences."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.portal.records.database import Database
from headstart.portal.records.tables import EventRow

LOG_LINES = 100


def log_event(
    session: Session,
    at: datetime,
    kind: str,
    message: str,
    team_id: int | None = None,
    submission_id: int | None = None,
    public: bool = False,
) -> None:
    """Add a line to the log.

    Args:
        session: Session of the change that the line is about; both are committed together.
        at: Time of the event.
        kind: The event in a word.
        message: The event in a sentence.
        team_id: The participant concerned.
        submission_id: The submission concerned.
        public: Whether everybody may read the line.
    """
    session.add(EventRow(at=at, kind=kind, public=public, team_id=team_id, submission_id=submission_id, text=message))


def read_public_log(session: Session) -> Sequence[EventRow]:
    """Return the latest 100 public lines of the log, the latest first."""
    query = select(EventRow).where(EventRow.public.is_(True)).order_by(EventRow.id.desc()).limit(LOG_LINES)
    return session.scalars(query).all()


def read_whole_log(database: Database, count: int) -> Sequence[EventRow]:
    """Return the latest lines of the log, also those for organisers alone, the latest last."""
    with database.reading() as session:
        events = session.scalars(select(EventRow).order_by(EventRow.id.desc()).limit(count)).all()
    return events[::-1]


def event_as_json(event: EventRow) -> dict[str, Any]:
    """Return a line of the log as JSON."""
    return {"id": event.id, "time": event.at.isoformat(), "event": event.kind, "text": event.text}

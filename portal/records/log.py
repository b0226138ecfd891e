"""The log: what happened at the portal, in sentences."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from headstart.output.errors import UserError
from headstart.portal.records.database import Database
from headstart.portal.records.tables import MAX_ID, EventRow, SubmissionRow

LOG_LINES = 100
LATEST_ANNOUNCEMENTS = 3
# Decisions of organisers about submissions, which everybody reads even where submissions are not shown.
SAID_ANYWAY = ("disqualified", "reinstated")


def name_of(submission: SubmissionRow, team: str) -> str:
    """Return how lines of the log name a submission, which they begin with."""
    return f"Submission {submission.id} of {team} ({submission.track.title()} Team)"


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


def check_line(name: str, text: str) -> str:
    """Return an organiser's text for others without spaces at its ends.

    Raises:
        UserError: It is not one line of visible characters.
    """
    text = text.strip()
    if not text or not text.isprintable():
        raise UserError(f"{name}: {text!r} is not valid; give one line of visible characters")
    return text


def announce(database: Database, text: str) -> int:
    """Announce a line of text to everybody, and return the number of its line in the log."""
    event = EventRow(at=datetime.now(UTC), kind="announcement", public=True, text=check_line("text", text))
    with database.writing() as session:
        session.add(event)
    return event.id


def retract(database: Database, number: int) -> None:
    """Hide an announcement, which organisers still read in the log.

    Raises:
        UserError: There is no announcement of this number.
    """
    with database.writing() as session:
        event = session.get(EventRow, number) if 0 < number <= MAX_ID else None
        if event is None or event.kind != "announcement":
            raise UserError(f"number: line {number} of the log is not an announcement")
        event.public = False


def read_announcements(session: Session) -> Sequence[EventRow]:
    """Return the latest three announcements, the latest first."""
    query = select(EventRow).where(EventRow.kind == "announcement", EventRow.public.is_(True))
    return session.scalars(query.order_by(EventRow.id.desc()).limit(LATEST_ANNOUNCEMENTS)).all()


def read_public_log(session: Session, with_submissions: bool, team_id: int | None = None) -> Sequence[EventRow]:
    """Return the latest 100 public lines of the log, the latest first.

    Args:
        session: Session of the portal's database.
        with_submissions: Whether lines about all submissions are shown.
        team_id: The participant who asks, and always reads about its own.
    """
    query = select(EventRow).where(EventRow.public.is_(True)).order_by(EventRow.id.desc()).limit(LOG_LINES)
    if not with_submissions:
        own = [] if team_id is None else [EventRow.team_id == team_id]
        query = query.where(or_(EventRow.submission_id.is_(None), EventRow.kind.in_(SAID_ANYWAY), *own))
    return session.scalars(query).all()


def read_whole_log(database: Database, count: int) -> Sequence[EventRow]:
    """Return the latest lines of the log, also those for organisers alone, the latest last."""
    with database.reading() as session:
        events = session.scalars(select(EventRow).order_by(EventRow.id.desc()).limit(count)).all()
    return events[::-1]


def event_as_json(event: EventRow) -> dict[str, Any]:
    """Return a line of the log as JSON."""
    return {"id": event.id, "time": event.at.isoformat(), "event": event.kind, "text": event.text}

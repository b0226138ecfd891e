"""The log: what happened at the portal, in sentences."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from headstart.portal.tables import EventRow, SubmissionRow, TeamRow

LOG_LINES = 100


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


def read_log(session: Session, with_submissions: bool, team: TeamRow | None) -> Sequence[EventRow]:
    """Return the latest 100 public lines, the latest first.

    Args:
        session: Session of the portal's database.
        with_submissions: Whether lines about all submissions are shown.
        team: The participant who asks, and always reads about its own.
    """
    query = select(EventRow).where(EventRow.public.is_(True)).order_by(EventRow.id.desc()).limit(LOG_LINES)
    if not with_submissions:
        own = [] if team is None else [EventRow.team_id == team.id]
        query = query.where(or_(EventRow.submission_id.is_(None), *own))
    return session.scalars(query).all()


def event_as_json(event: EventRow) -> dict[str, Any]:
    """Return a line of the log as JSON."""
    return {"id": event.id, "time": event.at.isoformat(), "event": event.kind, "text": event.text}

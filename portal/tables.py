"""The tables of the portal's database: teams, submissions, the event log and facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import JSON, DateTime, Dialect, ForeignKey, Index, LargeBinary, String, Text, or_, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, deferred, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from headstart.contract.schema import Track

State = Literal["queue", "running", "scored", "refused", "failed"]

# The largest key in PostgreSQL.
MAX_ID = 2**31 - 1


class UtcTime(TypeDecorator[datetime]):
    """A time in UTC; SQLite stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a time to UTC for the database."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time of the database in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Table(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own
        datetime: UtcTime,
        list[dict[str, str]]: JSON(none_as_null=True),
        str: Text,
    }


class TeamRow(Table):
    """A team, which may submit until it is revoked; only a digest of its token is stored."""

    __tablename__ = "teams"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    canonical: Mapped[str] = mapped_column(unique=True)
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    added: Mapped[datetime]
    revoked: Mapped[datetime | None]


class SubmissionRow(Table):
    """A submitted document, its state in the queue, and its latest score.

    A refused submission has `problems`. If it was refused on arrival, it was never `queued` and has no `content`. A
    `hidden` submission is on no leaderboard.

    A score stays until another score replaces it, even while the submission is scored again or if that fails. Only the
    worker with the latest attempt may end a scoring. `tries` counts the attempts since the submission was queued.
    `basis` identifies the documents and rules of the score.
    """

    __tablename__ = "submissions"
    __table_args__ = (Index("ix_submissions_queue", "state", "id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), index=True)
    track: Mapped[Track] = mapped_column(String(8))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    received: Mapped[datetime]
    hidden: Mapped[bool] = mapped_column(default=False)
    state: Mapped[State] = mapped_column(String(8))
    attempt: Mapped[int] = mapped_column(default=0)
    tries: Mapped[int] = mapped_column(default=0)
    queued: Mapped[datetime | None]
    lease_until: Mapped[datetime | None]
    ended: Mapped[datetime | None]
    note: Mapped[str] = mapped_column(default="")
    error: Mapped[str] = mapped_column(default="")
    basis: Mapped[str] = mapped_column(String(64), default="")
    score: Mapped[float | None]
    debiased: Mapped[float | None]
    calibrated: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    problems: Mapped[list[dict[str, str]] | None]
    # The large columns are last: SQLite reads through all that comes before a column.
    content: Mapped[bytes | None] = deferred(mapped_column(LargeBinary))
    document: Mapped[str | None] = deferred(mapped_column(Text))
    team: Mapped[TeamRow] = relationship()


class EventRow(Table):
    """A line of the log; only organisers see lines that are not public."""

    __tablename__ = "events"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    public: Mapped[bool]
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    text: Mapped[str]


class FactRow(Table):
    """A fact about the portal as a whole, by name."""

    __tablename__ = "facts"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str]


# A scoring that failed to finish several times may crash its worker, and comes last.
QUEUE_ORDER = (SubmissionRow.tries > 3, SubmissionRow.id)


def log_event(
    session: Session, kind: str, text: str, about: SubmissionRow | TeamRow | None = None, public: bool = False
) -> None:
    """Add a line to the log. If it is about a submission, it begins with its number and team.

    Args:
        session: Session of the logged change; the line is committed with it.
        kind: Type of the event, one word.
        text: The event in a sentence.
        about: The submission or the team that the event is about.
        public: Whether others than organisers may read the line: if it is about a submission, its team, else everybody.
    """
    event = EventRow(at=datetime.now(UTC), kind=kind, public=public, text=text)
    if isinstance(about, SubmissionRow):
        event.text = f"Submission {about.id} of {about.team.name} ({about.track.title()} Team): {text}"
        event.submission_id, event.team_id = about.id, about.team_id
    elif about is not None:
        event.team_id = about.id
    session.add(event)


def read_log(session: Session, team: TeamRow | None) -> Sequence[EventRow]:
    """Return the latest 100 public lines, newest first, without those about submissions of other teams."""
    is_visible = or_(EventRow.submission_id.is_(None), EventRow.team_id == (team.id if team else 0))
    return session.scalars(
        select(EventRow).where(EventRow.public.is_(True), is_visible).order_by(EventRow.id.desc()).limit(100)
    ).all()


def event_as_json(event: EventRow) -> dict[str, Any]:
    """Return a line of the log as a JSON object."""
    return {"id": event.id, "time": event.at, "event": event.kind, "text": event.text}

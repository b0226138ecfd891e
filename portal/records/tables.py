"""The tables of the database: teams and their accounts, submissions, their scorings, the log.

A change of a table needs a migration in `migrations/versions`.
"""

from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import DateTime, Float, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, composite, deferred, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from headstart.contract.schema import Team as Track
from headstart.portal.records.scores import SCORE_NAMES, Scores

Kind = Literal["public", "held_out"]
State = Literal["queue", "running", "scored", "refused", "failed", "cancelled"]

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

    type_annotation_map = {datetime: UtcTime, bytes: LargeBinary}  # noqa: RUF012 - SQLAlchemy's own


class TeamRow(Table):
    """A participant, which submits once organisers have approved it and until they revoke it."""

    __tablename__ = "teams"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    canonical: Mapped[str] = mapped_column(String(256), unique=True)
    added: Mapped[datetime]
    approved: Mapped[datetime | None]
    revoked: Mapped[datetime | None]


class AccountRow(Table):
    """A person: a member of a team, an organiser, or both. Only digests of token and recovery code are stored."""

    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    email: Mapped[str | None] = mapped_column(String(254), unique=True)
    is_organiser: Mapped[bool] = mapped_column(default=False)
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    recovery_sha256: Mapped[str | None] = mapped_column(String(64), unique=True)
    added: Mapped[datetime]
    revoked: Mapped[datetime | None]
    team: Mapped[TeamRow | None] = relationship(lazy="joined")


class InvitationRow(Table):
    """A link by which one person joins a team, or registers a new one."""

    __tablename__ = "invitations"
    id: Mapped[int] = mapped_column(primary_key=True)
    code_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"))
    name: Mapped[str] = mapped_column(String(64), default="")
    email: Mapped[str | None] = mapped_column(String(254))
    created: Mapped[datetime]
    expires: Mapped[datetime]
    used: Mapped[datetime | None]
    team: Mapped[TeamRow | None] = relationship(lazy="joined")


class SessionRow(Table):
    """A browser in which a person is logged in, by the digest of its cookie."""

    __tablename__ = "sessions"
    id: Mapped[int] = mapped_column(primary_key=True)
    cookie_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), index=True)
    begun: Mapped[datetime]
    expires: Mapped[datetime]


class AcceptanceRow(Table):
    """A person accepted a version of a challenge's terms."""

    __tablename__ = "acceptances"
    __table_args__ = (UniqueConstraint("account_id", "phase", "version"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"))
    phase: Mapped[str] = mapped_column(String(128))
    version: Mapped[str] = mapped_column(String(64))
    text_sha256: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime]


class SubmissionRow(Table):
    """A submitted document; of one that was refused on arrival, the digest, the size and the problems alone.

    `refused` holds its problems as JSON, `disqualified` the organisers' reason, `chosen` whether its team chose it.
    """

    __tablename__ = "submissions"
    __table_args__ = (UniqueConstraint("team_id", "key"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), index=True)
    account_id: Mapped[int | None] = mapped_column(ForeignKey("accounts.id"))
    phase: Mapped[str] = mapped_column(String(128))
    track: Mapped[Track] = mapped_column(String(8))
    key: Mapped[str] = mapped_column(String(160))
    content: Mapped[bytes | None] = deferred(mapped_column(LargeBinary))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    received: Mapped[datetime]
    refused: Mapped[str | None] = deferred(mapped_column(Text))
    is_refused: Mapped[bool] = mapped_column(default=False)
    withdrawn: Mapped[datetime | None]
    disqualified: Mapped[str | None] = mapped_column(Text)
    chosen: Mapped[bool] = mapped_column(default=False)


class ScoringRow(Table):
    """One scoring of a submission: its state in the queue, its worker and its result.

    A submission has one scoring of each kind and round. Each ends once: only the holder of the latest attempt may end
    it. `basis` identifies the documents and rules that it is scored by.
    """

    __tablename__ = "scorings"
    __table_args__ = (
        UniqueConstraint("submission_id", "kind", "round"),
        Index("ix_scorings_queue", "state", "kind", "id"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    kind: Mapped[Kind] = mapped_column(String(8))
    round: Mapped[int] = mapped_column(default=1)
    basis: Mapped[str] = mapped_column(String(65), default="")
    state: Mapped[State] = mapped_column(String(16), default="queue")
    attempt: Mapped[int] = mapped_column(default=0)
    queued: Mapped[datetime]
    not_before: Mapped[datetime]
    started: Mapped[datetime | None]
    lease_until: Mapped[datetime | None]
    worker: Mapped[str | None] = mapped_column(String(128))
    ended: Mapped[datetime | None]
    note: Mapped[str] = mapped_column(Text, default="")
    error: Mapped[str] = mapped_column(Text, default="")
    scores: Mapped[Scores] = composite(Scores, *(mapped_column(name, Float) for name in SCORE_NAMES))
    document: Mapped[str | None] = deferred(mapped_column(Text))
    heatmap: Mapped[bytes | None] = deferred(mapped_column(LargeBinary))


# Public scores come first. A scoring that ended its process several times may do so again, and goes behind the others.
QUEUE_ORDER = (ScoringRow.kind == "held_out", ScoringRow.attempt > 3, ScoringRow.id)


class EventRow(Table):
    """One line of the log; only organisers see those that are not public."""

    __tablename__ = "events"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32), index=True)
    public: Mapped[bool]
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    text: Mapped[str] = mapped_column(Text)


class FactRow(Table):
    """A fact about the portal as a whole, by name."""

    __tablename__ = "facts"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)

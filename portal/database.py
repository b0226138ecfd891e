"""What the portal keeps, as tables: teams, submissions, their scorings, the log.

SQLite keeps them in one file with a write-ahead log, so that pages are read while a score is written. A URL names
another file, or a PostgreSQL database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import (
    DateTime,
    Engine,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, Connection, Dialect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, deferred, mapped_column
from sqlalchemy.types import TypeDecorator

from headstart.output.errors import UserError

Kind = Literal["public", "held_out"]
State = Literal["queue", "running", "scored", "refused", "failed"]

# Bytes of "Headstart": whatever else uses the same PostgreSQL has other locks.
_LOCK = 0x4865_6164
_WAIT_SECONDS = 10
# Changed with the tables.
_FORMAT_FACT, _FORMAT = "format", "1"
# What a database that is away, or has no room, raises.
AWAY = (DBAPIError, PoolTimeoutError)


class Moment(TypeDecorator[datetime]):
    """A time in UTC, which SQLite keeps without saying so."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Write a time in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Read a time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Table(DeclarativeBase):
    """What is kept."""

    type_annotation_map = {datetime: Moment, bytes: LargeBinary}  # noqa: RUF012 - SQLAlchemy's own


class TeamRow(Table):
    """A participant: a name, and the digest of the token that proves it."""

    __tablename__ = "teams"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    canonical: Mapped[str] = mapped_column(String(256), unique=True)
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    added: Mapped[datetime]
    revoked: Mapped[datetime | None]


class SubmissionRow(Table):
    """A document that was handed in; `refused` holds the problems for which it is not scored, as JSON."""

    __tablename__ = "submissions"
    __table_args__ = (UniqueConstraint("team_id", "key"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), index=True)
    track: Mapped[str] = mapped_column(String(8))
    key: Mapped[str] = mapped_column(String(160))
    content: Mapped[bytes] = deferred(mapped_column(LargeBinary))
    sha256: Mapped[str] = mapped_column(String(64))
    received: Mapped[datetime]
    refused: Mapped[str | None] = deferred(mapped_column(Text))
    is_refused: Mapped[bool] = mapped_column(default=False)


class ScoringRow(Table):
    """One scoring of a submission: its place in the queue, who is at it, and what came out.

    There is one of each kind and round, and it ends once: only who holds the latest attempt may write its end.
    """

    __tablename__ = "scorings"
    __table_args__ = (
        UniqueConstraint("submission_id", "kind", "round"),
        Index("ix_scorings_queue", "state", "kind", "id"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    kind: Mapped[str] = mapped_column(String(8))
    round: Mapped[int] = mapped_column(default=1)
    state: Mapped[str] = mapped_column(String(8), default="queue")
    attempt: Mapped[int] = mapped_column(default=0)
    queued: Mapped[datetime]
    not_before: Mapped[datetime]
    started: Mapped[datetime | None]
    lease_until: Mapped[datetime | None]
    worker: Mapped[str | None] = mapped_column(String(128))
    ended: Mapped[datetime | None]
    note: Mapped[str] = mapped_column(Text, default="")
    error: Mapped[str] = mapped_column(Text, default="")
    score: Mapped[float | None]
    debiased: Mapped[float | None]
    calibrated: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    document: Mapped[str | None] = deferred(mapped_column(Text))
    heatmap: Mapped[bytes | None] = deferred(mapped_column(LargeBinary))


class EventRow(Table):
    """One line of the log; those that are not public are for organisers alone."""

    __tablename__ = "events"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    public: Mapped[bool]
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    text: Mapped[str] = mapped_column(Text)


class FactRow(Table):
    """What holds for the portal as a whole, by name."""

    __tablename__ = "facts"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class Database:
    """A connection to the portal's database.

    Args:
        url: SQLAlchemy's URL of an SQLite file or a PostgreSQL database.

    Raises:
        UserError: It is no such URL, or the driver is missing.
    """

    def __init__(self, url: str) -> None:
        try:
            self.url = make_url(url)
            if self.url.get_backend_name() in {"postgresql", "postgres"}:
                self.url = self.url.set(drivername="postgresql+psycopg")
            elif not self.is_sqlite:
                raise ArgumentError
            self.engine = (_sqlite if self.is_sqlite else _postgresql)(self.url)
        except ArgumentError as error:
            # The text may hold a password.
            raise UserError(
                "database: is no URL of SQLite or PostgreSQL, such as sqlite:///portal.sqlite3 or "
                "postgresql+psycopg://portal@localhost/portal"
            ) from error
        except ModuleNotFoundError as error:
            raise UserError(f"database: {error}; pip install 'headstart[portal]'") from error
        self._for_writing = self.engine.execution_options(writing=True)
        # SQLite's transactions see one state anyway.
        one_state = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._for_reading = self.engine.execution_options(**one_state)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def create_tables(self) -> None:
        """Create the tables where there are none; several processes may do so at once.

        Raises:
            UserError: There are those of another version of the portal.
        """
        with self._for_writing.begin() as connection:
            if not self.is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            there = inspect(connection).get_table_names()
            if not there:
                Table.metadata.create_all(connection)
                connection.execute(insert(FactRow).values(name=_FORMAT_FACT, value=_FORMAT))
            known = FactRow.__tablename__ in there
            query = select(FactRow.value).where(FactRow.name == _FORMAT_FACT)
            found = connection.scalar(query) if known or not there else None
        if found != _FORMAT:
            raise UserError(
                "database: was not made by this version of the portal; serve it by the one that made it, or name an "
                "empty one"
            )

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that sees one state of the database."""
        with Session(self._for_reading) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session whose changes are there together at the end, or after an exception not at all."""
        with Session(self._for_writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def record(
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
        session: Of a change, with which the line appears.
        at: When it was.
        kind: What happened, in a word.
        message: What happened, in a sentence.
        team_id: Whose it was.
        submission_id: What it was about.
        public: Whether everybody may read it.
    """
    event_row = EventRow(at=at, kind=kind, public=public, team_id=team_id, submission_id=submission_id, text=message)
    session.add(event_row)


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _WAIT_SECONDS}, pool_size=16, max_overflow=32)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's
        # Python's driver would begin transactions by itself, and too late to keep others from writing.
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    # One that went away is noticed before it is used, and one that does not answer is not waited for. A machine that
    # lost its power says nothing: without probes its answer would be waited for two hours.
    probes = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}
    arguments = {"connect_timeout": 5, **probes}
    return create_engine(url, pool_pre_ping=True, pool_size=16, max_overflow=32, connect_args=arguments)

"""Connections to the portal's database.

SQLite stores it in one file with a write-ahead log, so that pages are read while a score is written. A URL names
another file, or a PostgreSQL database.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from headstart.output.errors import UserError, reason_of
from headstart.output.files import output_file, replacing
from headstart.portal.records.backups import record_backup
from headstart.portal.records.migrate import migrate
from headstart.portal.records.private_files import make_private_database

# The bytes of "Head": other programs on the same PostgreSQL use other locks.
_LOCK = 0x4865_6164
_WAIT_SECONDS = 10
# Exceptions of a database that is unreachable or full.
UNAVAILABLE = (DBAPIError, PoolTimeoutError)


class Database:
    """A connection to the portal's database.

    Args:
        url: SQLAlchemy's URL of an SQLite file or a PostgreSQL database.

    Raises:
        UserError: The URL is neither, or the driver is missing.
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
            # The URL may hold a password, so the message does not repeat it.
            raise UserError(
                "database: must be a URL of SQLite or PostgreSQL, such as sqlite:///portal.sqlite3 or "
                "postgresql+psycopg://portal@localhost/portal"
            ) from error
        except ModuleNotFoundError as error:
            raise UserError(f"database: {error}; pip install 'headstart[portal]'") from error

        self._identity: tuple[int, int] | None = None
        self._for_writing = self.engine.execution_options(writing=True)
        # A transaction of SQLite sees one state in any case.
        isolation = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._for_reading = self.engine.execution_options(**isolation)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def create_tables(self) -> Path | None:
        """Create the tables in an empty database, or bring those of an earlier version of the portal up to date.

        Several processes may do so at once. An earlier database is copied first; a change that fails changes nothing.

        Returns:
            The copy of the earlier database: a file beside an SQLite file, or a schema of PostgreSQL; None without one.

        Raises:
            UserError: The tables are not the portal's, or those of a later version; or an SQLite file is open to others
                and belongs to another user.
        """
        if self.is_sqlite and self.url.database:
            make_private_database(Path(self.url.database))
        with self.engine.execution_options(writing=True, migrating=True).begin() as connection:
            if not self.is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            copy = migrate(connection, self.back_up)
            if copy is not None:
                with Session(connection) as session:
                    record_backup(session, copy)
                    session.commit()
        # The connection that migrated does not check foreign keys.
        self.engine.dispose()
        self._identity = self._find_file()
        return copy

    def reading(self) -> Session:
        """Open a session that sees one state of the database."""
        return Session(self._for_reading)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session whose changes are committed together at the end, or rolled back after an exception."""
        self.check_file()
        with sessionmaker(self._for_writing, expire_on_commit=False).begin() as session:
            yield session
        # Otherwise a file that was removed meanwhile would have been written to.
        self.check_file()

    def check_file(self) -> None:
        """Check that an SQLite file is still the one that was opened: others would read nothing of what is written.

        Raises:
            OperationalError: The file was removed or replaced.
        """
        if self._identity is not None and self._find_file() != self._identity:
            reason = f"{self.url.database} was removed or replaced while it was open; put it back, or restart"
            raise OperationalError(reason, None, OSError(reason))

    def _find_file(self) -> tuple[int, int] | None:
        """Return what identifies an SQLite file; None if there is none."""
        try:
            state = Path(self.url.database or "").stat() if self.is_sqlite else None
        except FileNotFoundError:
            return None
        return state and (state.st_dev, state.st_ino)

    def back_up(self, file: Path) -> Path:
        """Copy an SQLite database while others use it; the copy shows one state.

        Args:
            file: The file to write; an existing one is replaced.

        Returns:
            The file.

        Raises:
            UserError: It cannot be written, it is the database itself, or the database is no SQLite file.
        """
        if not self.is_sqlite:
            raise UserError("database: is not an SQLite file; back up PostgreSQL with pg_dump")
        target = output_file("file", file)
        in_use = Path(self.url.database or "").resolve()
        if target.resolve() in {in_use.with_name(f"{in_use.name}{end}") for end in ("", "-wal", "-shm")}:
            raise UserError(f"file: {str(file)!r} is the database in use; choose another")

        target.parent.mkdir(parents=True, exist_ok=True)
        connection = self.engine.raw_connection()
        try:
            with replacing(target) as partial, closing(sqlite3.connect(partial)) as copy:
                original = connection.driver_connection
                assert isinstance(original, sqlite3.Connection)
                # The database holds held-out scores.
                partial.chmod(0o600)
                original.backup(copy)
                # Without a write-ahead log, the backup is one file instead of three.
                copy.execute("PRAGMA journal_mode = DELETE")
        except (sqlite3.Error, OSError) as error:
            raise UserError(f"file: {str(file)!r} cannot be written ({reason_of(error)}); choose another") from error
        finally:
            connection.close()
        return target

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _WAIT_SECONDS}, pool_size=16, max_overflow=32)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's
        # Python's driver would begin transactions by itself, too late to lock out other writers.
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("migrating", False):
            # A table is changed by a copy that takes its place, which foreign keys would not allow.
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing", False) else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    # A lost connection is noticed before it is used. A server that lost its power sends nothing: without these probes
    # the portal would wait two hours for its answer.
    probes = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}
    arguments = {"connect_timeout": 5, **probes}
    return create_engine(url, pool_pre_ping=True, pool_size=16, max_overflow=32, connect_args=arguments)

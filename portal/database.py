"""Connections to the portal's database, and the files that only its owner can open.

SQLite stores it in one file with a write-ahead log, so that pages are read while a score is written. A URL names
another file, or a PostgreSQL database.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from headstart.output.errors import UserError
from headstart.portal.tables import FactRow, Table

SCHEMA = "2"
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

    def __init__(self, url: str | URL) -> None:
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

        self._identity: tuple[int, int] | None = None
        self._for_writing = self.engine.execution_options(writing=True)
        # A transaction of SQLite sees one state in any case.
        isolation = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._for_reading = self.engine.execution_options(**isolation)

    @property
    def is_sqlite(self) -> bool:
        """Return whether it is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def create_tables(self) -> None:
        """Create the tables in an empty database; several processes may do so at once.

        Raises:
            UserError: The database cannot be used, or its tables are not the portal's or those of another schema.
        """
        if self.is_sqlite and self.url.database:
            # SQLite says why a file cannot be made, and gives the files of its log the permissions of the database.
            with suppress(OSError):
                Path(self.url.database).touch(stat.S_IRUSR | stat.S_IWUSR)
        try:
            with self._for_writing.begin() as connection:
                if not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                _create_or_check(connection)
        except UNAVAILABLE as error:
            raise explain(error) from error
        self._identity = self._find_file()

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
        """Return the device and the number of an SQLite file; None where there is none."""
        if not self.is_sqlite or not self.url.database:
            return None
        with suppress(OSError):
            state = Path(self.url.database).stat()
            return state.st_dev, state.st_ino
        return None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def make_private_folder(folder: Path) -> None:
    """Create the folder of the portal's own data, for its owner alone; one that exists stays as it is."""
    folder.mkdir(stat.S_IRWXU, parents=True, exist_ok=True)


def explain(error: Exception) -> UserError:
    """Return the mistake that an error of `UNAVAILABLE` means for a command."""
    return UserError(f"database: cannot be used ({str(error).splitlines()[0]}); check the URL and the server")


def _create_or_check(connection: Connection) -> None:
    tables = inspect(connection).get_table_names()
    if not tables:
        Table.metadata.create_all(connection)
        connection.execute(FactRow.__table__.insert().values(name="schema", value=SCHEMA))  # type: ignore[attr-defined] # of a table
        return

    query = text("SELECT value FROM facts WHERE name = 'schema'")
    schema = connection.scalar(query) if FactRow.__tablename__ in tables else None
    if schema != SCHEMA:
        raise UserError(
            f"database: has schema {schema or 'of another program'}, and this portal reads schema {SCHEMA}; use an "
            "empty database"
        )


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
        is_writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    # A lost connection is noticed before it is used. A server that lost its power sends nothing: without these probes
    # the portal would wait two hours for its answer.
    probes = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}
    arguments = {"connect_timeout": 5, **probes}
    return create_engine(url, pool_pre_ping=True, pool_size=16, max_overflow=32, connect_args=arguments)

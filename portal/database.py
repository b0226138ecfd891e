"""The portal's database: one SQLite file with a write-ahead log, so that pages are read while a score is written."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event, inspect
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from headstart.output.errors import UserError
from headstart.portal.tables import Table

FILE = "portal.sqlite3"
SCHEMA = 1
_WAIT_SECONDS = 10
# Exceptions of a database that is locked, full or away.
UNAVAILABLE = (DBAPIError, PoolTimeoutError)


class Database:
    """A connection to the portal's database.

    Args:
        folder: Folder of the portal's own data.
    """

    def __init__(self, folder: Path) -> None:
        url = URL.create("sqlite", database=str(folder.absolute() / FILE))
        self.engine = create_engine(url, connect_args={"timeout": _WAIT_SECONDS}, pool_size=16, max_overflow=32)
        event.listen(self.engine, "connect", _configure)
        event.listen(self.engine, "begin", _begin)
        self._for_writing = self.engine.execution_options(writing=True)

    def create_tables(self) -> None:
        """Create the tables in an empty database; several processes may do so at once.

        Raises:
            UserError: The database cannot be used, or its tables are those of another schema.
        """
        try:
            with self._for_writing.begin() as connection:
                if not inspect(connection).get_table_names():
                    Table.metadata.create_all(connection)
                    connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA}")
                schema = connection.exec_driver_sql("PRAGMA user_version").scalar()
        except UNAVAILABLE as error:
            raise explain(error) from error
        if schema != SCHEMA:
            rule = f"this portal reads schema {SCHEMA}; use another folder"
            raise UserError(f"data: {FILE} has schema {schema}, and {rule}")

    def reading(self) -> Session:
        """Open a session that sees one state of the database."""
        return Session(self.engine)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session whose changes are committed together at the end, or rolled back after an exception."""
        with sessionmaker(self._for_writing, expire_on_commit=False).begin() as session:
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def make_private_folder(folder: Path) -> None:
    """Create the folder of the portal's own data, or close an existing one to others.

    Raises:
        UserError: It is open to others and belongs to another user.
    """
    folder.mkdir(stat.S_IRWXU, parents=True, exist_ok=True)
    mode = stat.S_IMODE(folder.stat().st_mode)
    try:
        if mode & ~stat.S_IRWXU:
            folder.chmod(mode & stat.S_IRWXU)
    except PermissionError as error:
        reason = "is open to others and belongs to another user, who can run"
        raise UserError(f"data: {str(folder)!r} {reason} `chmod go= {folder}`; or choose another") from error


def explain(error: Exception) -> UserError:
    """Return the mistake that an error of `UNAVAILABLE` means for a command."""
    return UserError(f"data: the database cannot be used ({str(error).splitlines()[0]}); check the folder")


def _configure(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's
    # Python's driver would begin transactions by itself, too late to lock out other writers.
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    is_writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")

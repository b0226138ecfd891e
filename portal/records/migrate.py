"""The tables of a database are brought up to date by Alembic, after a copy of an earlier version's."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from headstart.output.errors import UserError
from headstart.portal.records.tables import Table

FOLDER = Path(__file__).parent / "migrations"
# Its progress is no news for an organiser.
logging.getLogger("alembic").setLevel(logging.WARNING)


def migrate(connection: Connection, back_up: Callable[[Path], Path]) -> Path | None:
    """Create the tables, or bring them up to date, in the transaction of a connection.

    Args:
        connection: A connection that has locked out other writers.
        back_up: Copies an SQLite database to a file.

    Returns:
        The copy of the earlier database, if there was one to be changed.

    Raises:
        UserError: The tables are not the portal's, or those of a later version.
    """
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(FOLDER))
    scripts = ScriptDirectory.from_config(config)
    known, newest = {script.revision for script in scripts.walk_revisions()}, scripts.get_current_head()

    tables = inspect(connection).get_table_names()
    revision = MigrationContext.configure(connection).get_current_revision()
    if not tables:
        Table.metadata.create_all(connection)
        command.stamp(config, "head")
        return None
    if revision not in known and not (revision is None and _is_first(connection, tables)):
        raise UserError(
            "database: was made by a later version of the portal, or by another program; install that version, "
            "or use an empty database"
        )
    if revision == newest:
        return None

    copy = _copy(connection, f"before_{newest}_{datetime.now(UTC):%Y%m%dT%H%M%S}", tables, back_up)
    command.upgrade(config, "head")
    return copy


def _is_first(connection: Connection, tables: list[str]) -> bool:
    """Whether these are the tables of the first version, which wrote its format as a fact."""
    query = text("SELECT value FROM facts WHERE name = 'format'")
    return "facts" in tables and connection.scalar(query) == "1"


def _copy(connection: Connection, name: str, tables: list[str], back_up: Callable[[Path], Path]) -> Path:
    if connection.dialect.name == "sqlite":
        file = Path(connection.engine.url.database or "")
        return back_up(file.with_name(f"{file.name}.{name}"))

    connection.execute(text(f"CREATE SCHEMA {name}"))
    for table in tables:
        connection.execute(text(f"CREATE TABLE {name}.{table} AS TABLE {table}"))
    return Path(name)

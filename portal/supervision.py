"""What organisers alone see and keep: the whole log, the state of all scorings, copies of the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import func, select

from headstart.output.errors import UserError, reason_of
from headstart.output.files import output_file, replacing
from headstart.portal.database import Database, EventRow, ScoringRow


def read_whole_log(database: Database, count: int) -> Sequence[EventRow]:
    """Give the latest lines of the log, the latest last."""
    with database.reading() as session:
        found = session.scalars(select(EventRow).order_by(EventRow.id.desc()).limit(count)).all()
    return list(reversed(found))


def count_scorings(database: Database) -> list[tuple[str, str, int]]:
    """Count scorings by kind, `public` or `held_out`, and state."""
    query = select(ScoringRow.kind, ScoringRow.state, func.count()).group_by(ScoringRow.kind, ScoringRow.state)
    with database.reading() as session:
        return sorted((kind, state, count) for kind, state, count in session.execute(query))


def back_up(database: Database, file: Path) -> Path:
    """Copy an SQLite database as it is at one moment, while others use it.

    Args:
        database: The portal's.
        file: The file to write, in place of any that is there.

    Returns:
        The file.

    Raises:
        UserError: It cannot be written, it is the database itself, or the database is no SQLite file.
    """
    if not database.is_sqlite:
        raise UserError("database: is no SQLite file; back PostgreSQL up with pg_dump")
    target = output_file("file", file)
    in_use = Path(database.url.database or "").resolve()
    if target.resolve() in {in_use.with_name(f"{in_use.name}{end}") for end in ("", "-wal", "-shm")}:
        raise UserError(f"file: {str(file)!r} is the database that is in use; choose another")
    target.parent.mkdir(parents=True, exist_ok=True)
    connection = database.engine.raw_connection()
    try:
        with replacing(target) as partial, closing(sqlite3.connect(partial)) as copy:
            original = connection.driver_connection
            assert isinstance(original, sqlite3.Connection)
            # Held-out scores are in it.
            partial.chmod(0o600)
            original.backup(copy)
            # One file is easier to keep than three.
            copy.execute("PRAGMA journal_mode = DELETE")
    except (sqlite3.Error, OSError) as error:
        raise UserError(f"file: {str(file)!r} cannot be written ({reason_of(error)}); choose another") from error
    finally:
        connection.close()
    return target

"""Backups of an SQLite database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from headstart.output.errors import UserError, reason_of
from headstart.output.files import output_file, replacing
from headstart.portal.records.database import Database


def back_up(database: Database, file: Path) -> Path:
    """Copy an SQLite database while others use it; the copy shows one state.

    Args:
        database: The portal's database.
        file: The file to write; an existing one is replaced.

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

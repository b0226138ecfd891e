"""Checks that notice a ledger's damage: checksums of its rows, and the structure of its file."""

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from headstart.output.errors import reason_of

# The columns behind which a checksum is stored.
TRACE = "stream, method, ordering, correct, diverged"
ORIGIN = "digest, document"
CLASS_COUNTS = "stream, method, ordering, counts"


def checksum(*values: object) -> int:
    """Return a checksum of the values of a row; a flipped bit, or up to 32 in a row, of bytes always change it.

    Args:
        values: The values: texts, bytes, whole numbers, or None.
    """
    # A flipped bit can make a text of bytes, and move the border between two values.
    sizes = [len(value) if isinstance(value, bytes) else value for value in values]
    content = b"".join(value for value in values if isinstance(value, bytes))
    return zlib.crc32(content, zlib.crc32(ascii(sizes).encode()))


def is_intact(row: Sequence[object]) -> bool:
    """Whether a row, the checksum last, is as it was written."""
    return row[-1] == checksum(*row[:-1])


def require_intact(base: sqlite3.Connection, mend: Callable[[], None] | None) -> None:
    """Raise an error where the structure of a ledger's file is damaged, so that rows could be missing.

    It reads the whole file: 3 s for a million traces, 4 GB, that are in memory, and 11 s from a disk.

    Args:
        base: The ledger.
        mend: Rebuilds damaged indices from the tables; None where nothing may be written.

    Raises:
        sqlite3.DatabaseError: The file is damaged.
    """
    problems = _find_problems(base)
    if mend is not None and problems and all("index" in problem for problem in problems):
        mend()
        problems = _find_problems(base)
    if problems:
        raise sqlite3.DatabaseError(
            f"it is damaged: {problems[0].splitlines()[-1].strip()}; restore it from a copy, or remove "
            "traces.sqlite, whose traces are then measured again"
        )


def reason_of_failure(file: Path, error: Exception) -> str:
    """Return why a ledger could not be used; SQLite reports damage, too, where the disk returned an error.

    Args:
        file: The ledger's file.
        error: The error.
    """
    reason = reason_of(error)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if not isinstance(error, sqlite3.DatabaseError) or code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR):
        return reason
    try:
        file.read_bytes()
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as base:
            is_damaged = bool(_find_problems(base))
    except sqlite3.Error:
        return reason
    except OSError as failure:
        return f"{reason_of(failure)} in {file.name}; the disk or the network may be failing, try again"
    return reason if is_damaged or code == sqlite3.SQLITE_IOERR else "the disk failed for a moment; try again"


def _find_problems(base: sqlite3.Connection) -> list[str]:
    # The check goes through the file backwards, where no disk reads ahead, so that all pages are read forwards first.
    with suppress(sqlite3.DatabaseError):
        base.execute("SELECT max(written) FROM traces").fetchall()
    return [problem for (problem,) in base.execute("PRAGMA integrity_check") if problem != "ok"]

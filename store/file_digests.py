"""Digests of files, which are read again only where they have changed."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from headstart.output.files import digest_file

FILE = "file_digests.sqlite"
PATIENCE_SECONDS = 10
# A file that was written so shortly before it was read may be written again within the resolution of its time.
SETTLED_NANOSECONDS = 2 * 10**9
# SQLite takes this many values in one statement wherever it was built.
VALUES = 900


def digest_files(paths: Sequence[Path], cache: Path | None) -> list[str]:
    """Digest the bytes of files, side by side.

    A digest that is remembered counts as long as the file's size, times and place on the disk are what they were. Where
    nothing can be remembered, files are read.

    Args:
        paths: The files.
        cache: Folder that remembers their digests; None to read them all.

    Returns:
        Their SHA-256, hexadecimal.

    Raises:
        UserError: One of them cannot be read.
    """
    keys = [os.fsencode(path.absolute()) for path in paths]
    began = time.time_ns()
    with ThreadPoolExecutor() as pool:
        states = list(pool.map(_state_of, paths))
        known = _recall(cache, keys) if cache is not None else {}
        found = {}
        for key, state in zip(keys, states, strict=True):
            remembered, digest = known.get(key, ("", ""))
            if state and state == remembered:
                found[key] = digest
        missing = {key: path for key, path in zip(keys, paths, strict=True) if key not in found}
        found |= zip(missing, pool.map(digest_file, missing.values()), strict=True)
    if cache is not None and missing:
        settled = began - SETTLED_NANOSECONDS
        rows = [
            (key, state, found[key])
            for key, path, state in zip(keys, paths, states, strict=True)
            # Not where it was changed while it was read.
            if key in missing and _last_change(state) < settled and state == _state_of(path)
        ]
        _remember(cache, rows)
    return [found[key] for key in keys]


def _state_of(path: Path) -> str:
    """Give what changes whenever a file does; nothing where there is none, which is said when it is read."""
    try:
        state = path.stat()
    except OSError:
        return ""
    return f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def _last_change(state: str) -> int:
    return max(map(int, state.split()[3:]), default=0)


def _recall(cache: Path, keys: Sequence[bytes]) -> dict[bytes, tuple[str, str]]:
    with suppress(sqlite3.Error), _opened(cache, "?mode=ro") as base:
        known = {}
        for first in range(0, len(keys), VALUES):
            part = keys[first : first + VALUES]
            places = ", ".join("?" * len(part))
            for key, state, digest in base.execute(f"SELECT * FROM digests WHERE path IN ({places})", part):
                known[key] = state, digest
        return known
    return {}


def _remember(cache: Path, rows: Sequence[tuple[bytes, str, str]]) -> None:
    with suppress(sqlite3.Error, OSError):
        cache.mkdir(parents=True, exist_ok=True)
        with _opened(cache) as base:
            base.execute("CREATE TABLE IF NOT EXISTS digests (path BLOB PRIMARY KEY, state TEXT, digest TEXT)")
            base.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", rows)


@contextmanager
def _opened(cache: Path, mode: str = "") -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction."""
    path = (cache / FILE).absolute()
    if path.exists() and not path.is_file():
        raise sqlite3.OperationalError("a pipe would be waited for")
    with closing(sqlite3.connect(path.as_uri() + mode, uri=True, timeout=PATIENCE_SECONDS)) as base, base:
        yield base

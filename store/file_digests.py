"""Digests of files, which are read again only if they have changed."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from headstart.output.files import digest_file

FILE = "digests_of_files.sqlite"
PATIENCE_SECONDS = 10
# A file that was written this shortly before it was read may be written again within the resolution of its time.
SETTLED_NANOSECONDS = 2 * 10**9
# Files that are digested before what was read is stored, most of them in one task, and least number of tasks.
SPAN = 16_384
PART = 256
PARTS = 64

Item = TypeVar("Item")


def digest_files(paths: Sequence[str], cache: Path | None) -> list[str]:
    """Digest the bytes of files, side by side.

    A stored digest counts as long as the file's size, times and position on the disk are the same. If the cache cannot
    be used, all files are read. What was read is stored every `SPAN` files, so that a process that is killed loses
    little.

    Args:
        paths: The files, by absolute paths: their digests are stored under these.
        cache: Folder that stores their digests; None to read all files.

    Returns:
        Their SHA-256, hexadecimal.

    Raises:
        UserError: One of them cannot be read.
    """
    digests: list[str] = []
    with ThreadPoolExecutor() as pool:
        for span in _parts(paths, SPAN):
            by_path = _digest_span(list(dict.fromkeys(span)), cache, pool)
            digests += [by_path[path] for path in span]
    return digests


def _digest_span(paths: Sequence[str], cache: Path | None, pool: ThreadPoolExecutor) -> dict[str, str]:
    """Return the digests of different files by path, and store those that were not."""
    began = time.time_ns()
    states = _map(pool, state_of, paths)
    stored = _load(cache, states) if cache is not None else {}
    computed = _map(pool, digest_file, [path for path in paths if path not in stored])

    if cache is not None and computed:
        after = _map(pool, state_of, list(computed))
        # A file that changed while it was read, or may change without another state, is not stored.
        kept = [path for path in computed if states[path] == after[path] and is_settled(states[path], began)]
        _save(cache, [(os.fsencode(path), states[path], computed[path]) for path in kept])
    return stored | computed


def _map(pool: ThreadPoolExecutor, function: Callable[[str], str], paths: Sequence[str]) -> dict[str, str]:
    """Return what a function returns for files, by path; each task of the pool is of many files."""
    parts = _parts(paths, max(1, min(PART, len(paths) // PARTS)))
    results = chain.from_iterable(pool.map(lambda part: list(map(function, part)), parts))
    return dict(zip(paths, results, strict=True))


def state_of(path: str | Path) -> str:
    """Return a text that changes whenever a file does; empty if it is missing, which is an error when it is read."""
    try:
        state = os.stat(path)  # noqa: PTH116 - a Path for each of many files takes long
    except (OSError, ValueError):
        return ""
    return f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def is_settled(state: str, began: int) -> bool:
    """Return whether the next write of a file gives it another state, so that this state stands for what is read now.

    A time of change in the future says nothing.

    Args:
        state: The file's state, as `state_of` returns it; empty for a missing file.
        began: When it is read, in nanoseconds.
    """
    return bool(state) and max(map(int, state.split()[3:])) < began - SETTLED_NANOSECONDS


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def _load(cache: Path, states: Mapping[str, str]) -> dict[str, str]:
    """Return the stored digests of files that have not changed since."""
    digests: dict[str, str] = {}
    with suppress(sqlite3.Error), _opened(cache, "?mode=ro") as base:
        for path, state in states.items():
            found = base.execute("SELECT digest FROM files WHERE path = ? AND state = ?", (os.fsencode(path), state))
            if row := found.fetchone():
                digests[path] = row[0]
    return digests


def _save(cache: Path, rows: Sequence[tuple[bytes, str, str]]) -> None:
    with suppress(sqlite3.Error, OSError):
        cache.mkdir(parents=True, exist_ok=True)
        with _opened(cache) as base:
            base.execute("CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, state TEXT, digest TEXT)")
            base.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)


@contextmanager
def _opened(cache: Path, mode: str = "") -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction."""
    path = (cache / FILE).absolute()
    if path.exists() and not path.is_file():
        raise sqlite3.OperationalError("reading from a pipe would wait forever")
    with closing(sqlite3.connect(path.as_uri() + mode, uri=True, timeout=PATIENCE_SECONDS)) as base, base:
        # Many rows are read under one lock.
        base.execute("BEGIN")
        yield base

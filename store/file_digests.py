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
# A file that was modified this shortly before it was read may change again without a new modification time.
SETTLED_NANOSECONDS = 2 * 10**9
# Number of files whose digests are saved at once, largest number in a task, and smallest number of tasks.
SAVED_TOGETHER = 16_384
MAX_TASK_FILES = 256
MIN_TASKS = 64

Item = TypeVar("Item")


def digest_files(paths: Sequence[str], cache: Path | None) -> list[str]:
    """Digest the bytes of files, side by side.

    A stored digest is valid as long as the file has the same size, times and inode. If the cache cannot be used,
    all files are read. Digests are saved every `SAVED_TOGETHER` files, so that a process that is killed loses little.

    Args:
        paths: Absolute paths of the files, under which their digests are stored.
        cache: Folder that stores their digests; None to read all files.

    Returns:
        Their SHA-256, hexadecimal.

    Raises:
        UserError: One of them cannot be read.
    """
    digests: list[str] = []
    with ThreadPoolExecutor() as pool:
        for span in _parts(paths, SAVED_TOGETHER):
            by_path = _digest_span(list(dict.fromkeys(span)), cache, pool)
            digests += [by_path[path] for path in span]
    return digests


def _digest_span(paths: Sequence[str], cache: Path | None, pool: ThreadPoolExecutor) -> dict[str, str]:
    """Return the digests of distinct files by path, and store new ones."""
    began = time.time_ns()
    states = _map(pool, state_of, paths)
    stored = _load(cache, states) if cache is not None else {}
    computed = _map(pool, digest_file, [path for path in paths if path not in stored])

    if cache is not None and computed:
        after = _map(pool, state_of, list(computed))
        # The digest of a file that changed while it was read, or may change without a new state, is not stored.
        stable = [path for path in computed if states[path] == after[path] and is_settled(states[path], began)]
        _save(cache, [(os.fsencode(path), states[path], computed[path]) for path in stable])
    return stored | computed


def _map(pool: ThreadPoolExecutor, function: Callable[[str], str], paths: Sequence[str]) -> dict[str, str]:
    """Return the results of a function for files, by path; a task of the pool has many files."""
    parts = _parts(paths, max(1, min(MAX_TASK_FILES, len(paths) // MIN_TASKS)))
    results = chain.from_iterable(pool.map(lambda part: list(map(function, part)), parts))
    return dict(zip(paths, results, strict=True))


def state_of(path: str | Path) -> str:
    """Return a string that changes whenever a file does; empty for a missing file, which reading reports."""
    try:
        state = os.stat(path)  # noqa: PTH116 - a Path for each of many files takes long
    except (OSError, ValueError):
        return ""
    return f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def is_settled(state: str, began: int) -> bool:
    """Return whether any later change of a file gives it a new state, so that this state identifies its content.

    A file with a time in the future is not settled.

    Args:
        state: The file's state, as `state_of` returns it; empty for a missing file.
        began: When reading it began, in nanoseconds.
    """
    return bool(state) and max(map(int, state.split()[3:])) < began - SETTLED_NANOSECONDS


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def _load(cache: Path, states: Mapping[str, str]) -> dict[str, str]:
    """Return the stored digests of files that have not changed since."""
    paths = {os.fsencode(path): path for path, state in states.items() if state}
    digests: dict[str, str] = {}
    with suppress(sqlite3.Error), _opened(cache, "?mode=ro") as database:
        for some in _parts(list(paths), MAX_TASK_FILES):
            marks = ",".join("?" * len(some))
            for encoded, state, digest in database.execute(f"SELECT * FROM files WHERE path IN ({marks})", some):
                if state == states[paths[encoded]]:
                    digests[paths[encoded]] = digest
    return digests


def _save(cache: Path, rows: Sequence[tuple[bytes, str, str]]) -> None:
    with suppress(sqlite3.Error, OSError):
        cache.mkdir(parents=True, exist_ok=True)
        with _opened(cache) as database:
            database.execute("CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, state TEXT, digest TEXT)")
            database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)


@contextmanager
def _opened(cache: Path, mode: str = "") -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction."""
    address = (cache / FILE).absolute().as_uri() + mode
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS)) as database, database:
        # Many rows are read under one lock.
        database.execute("BEGIN")
        yield database

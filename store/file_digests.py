"""Digests of files, which are read again only if they have changed."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from headstart.output.files import digest_file

FILE = "file_digests.sqlite"
PATIENCE_SECONDS = 10
# A file that was written this shortly before it was read may be written again within the resolution of its time.
SETTLED_NANOSECONDS = 2 * 10**9
# Files that are digested before what was read is stored, most of them in one task or query, and least number of tasks.
SPAN = 16_384
PART = 256
PARTS = 64
# Files that are tried first, and the time of each within which no threads are used.
PROBED = 4
FAST_SECONDS = 50e-6

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
            found = _digest_span(list(dict.fromkeys(span)), cache, pool)
            digests += [found[path] for path in span]
    return digests


def _digest_span(paths: Sequence[str], cache: Path | None, pool: ThreadPoolExecutor) -> dict[str, str]:
    """Return the digests of different files by path, and store those that were not."""
    began = time.time_ns()
    states = _map(pool, state_of, paths)
    stored, seen = _load(cache, states) if cache is not None else ({}, {})
    # A time after now is of a clock that was set back.
    seen = {path: when for path, when in seen.items() if when <= began}
    computed = _map(pool, digest_file, [path for path in paths if path not in stored])

    if cache is not None and computed:
        after = _map(pool, state_of, list(computed))
        # A file that changed while it was read is not stored.
        same = [path for path in computed if states[path] and states[path] == after[path]]
        settled = {path for path in same if is_settled(states[path], seen.get(path, began), began)}
        _save(
            cache,
            [(os.fsencode(path), states[path], computed[path]) for path in same if path in settled],
            [(os.fsencode(path), states[path], began) for path in same if path not in settled and path not in seen],
        )
    return stored | computed


def _map(pool: ThreadPoolExecutor, function: Callable[[str], str], paths: Sequence[str]) -> dict[str, str]:
    """Return what a function returns for files, by path; each task of the pool is of many files."""
    probed, others = paths[:PROBED], paths[PROBED:]
    began = time.perf_counter()
    results = list(map(function, probed))
    # Threads wait side by side for a disk; with tiny files they only wait for each other.
    if time.perf_counter() - began < FAST_SECONDS * len(probed):
        results += map(function, others)
    else:
        parts = _parts(others, max(1, min(PART, len(others) // PARTS)))
        results += chain.from_iterable(pool.map(lambda part: list(map(function, part)), parts))
    return dict(zip(paths, results, strict=True))


def state_of(path: str | Path) -> str:
    """Return a text that changes whenever a file does; empty if it is missing, which is an error when it is read."""
    try:
        state = os.stat(path)  # noqa: PTH116 - a Path for each of many files takes long
    except (OSError, ValueError):
        return ""
    return f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def time_of_change(state: str) -> int:
    """Return the time of the last change in a state that `state_of` returned, in nanoseconds; 0 for a missing file."""
    return max(map(int, state.split()[3:]), default=0)


def is_settled(state: str, seen: int, began: int) -> bool:
    """Return whether the next write of a file gives it another state, so that this state stands for what is read now.

    A time of change in the future says nothing. The next write has another one, too, if the state was seen long before.

    Args:
        state: The file's state, as `state_of` returns it.
        seen: When it was first seen in this state, in nanoseconds.
        began: When it is read.
    """
    return min(time_of_change(state), seen) < began - SETTLED_NANOSECONDS


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def _load(cache: Path, states: Mapping[str, str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the stored digests of files that have not changed, and when others were first seen as they are now."""
    keys = {os.fsencode(path): path for path, state in states.items() if state}
    stored, seen = {}, {}
    with suppress(sqlite3.Error), _opened(cache, "?mode=ro") as base:
        stored = _select(base, "digest FROM digests", keys, states)
        seen = _select(base, "time FROM seen", {key: path for key, path in keys.items() if path not in stored}, states)
    return stored, seen


def _select(
    base: sqlite3.Connection, column: str, keys: Mapping[bytes, str], states: Mapping[str, str]
) -> dict[str, Any]:
    """Return a column of the rows whose state is that of the file, by path."""
    found = {}
    for some in _parts(list(keys), PART):
        marks = ",".join("?" * len(some))
        for key, state, value in base.execute(f"SELECT path, state, {column} WHERE path IN ({marks})", some):
            if state == states[keys[key]]:
                found[keys[key]] = value
    return found


def _save(
    cache: Path,
    digests: Sequence[tuple[bytes, str, str]],
    seen: Sequence[tuple[bytes, str, int]],
) -> None:
    with suppress(sqlite3.Error, OSError):
        cache.mkdir(parents=True, exist_ok=True)
        with _opened(cache) as base:
            base.execute("CREATE TABLE IF NOT EXISTS digests (path BLOB PRIMARY KEY, state TEXT, digest TEXT)")
            base.execute("CREATE TABLE IF NOT EXISTS seen (path BLOB PRIMARY KEY, state TEXT, time INTEGER)")
            base.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", digests)
            base.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", seen)


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

"""Digests of files, which are read again only if they have changed."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from headstart.output.files import digest_file

FILE = "file_digests.sqlite"
PATIENCE_SECONDS = 10
# A file that was written this shortly before it was read may be written again within the resolution of its time.
SETTLED_NANOSECONDS = 2 * 10**9


def digest_files(paths: Sequence[Path], cache: Path | None) -> list[str]:
    """Digest the bytes of files, side by side.

    A stored digest counts as long as the file's size, times and position on the disk are the same. If the cache cannot
    be used, all files are read.

    Args:
        paths: The files.
        cache: Folder that stores their digests; None to read all files.

    Returns:
        Their SHA-256, hexadecimal.

    Raises:
        UserError: One of them cannot be read.
    """
    began = time.time_ns()
    with ThreadPoolExecutor() as pool:
        states = dict(zip(paths, pool.map(state_of, paths), strict=True))
        stored = _load(cache, states) if cache is not None else {}
        missing = [path for path in states if path not in stored]
        computed = dict(zip(missing, pool.map(digest_file, missing), strict=True))

    if cache is not None and computed:
        settled = began - SETTLED_NANOSECONDS
        rows = [
            (_key(path), states[path], digest)
            for path, digest in computed.items()
            # A file that changed while it was read is not stored.
            if time_of_change(states[path]) < settled and states[path] == state_of(path)
        ]
        _save(cache, rows)
    return [stored.get(path) or computed[path] for path in paths]


def _key(path: Path) -> bytes:
    return os.fsencode(path.absolute())


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


def states_below(path: Path, *, folders: bool) -> dict[str, str]:
    """Return the states of a file, or of all files in a folder, without hidden folders and Python's stored byte code.

    Args:
        path: The file or folder; one that is missing has an empty state.
        folders: Whether the folders have a state, too, which changes when a file in them is added or removed.

    Returns:
        States by path.
    """
    states = {str(path): state_of(path)} if folders or not path.is_dir() else {}
    seen: set[str] = set()
    for folder, below, files in os.walk(path, followlinks=True):
        # A link may lead to a folder around it.
        real = os.path.realpath(folder)
        below[:] = sorted(name for name in below if name[0] != "." and name != "__pycache__" and real not in seen)
        seen.add(real)
        names = [*files, *below] if folders else files
        states |= {each: state_of(each) for each in (os.path.join(folder, name) for name in sorted(names))}  # noqa: PTH118
    return states


def _load(cache: Path, states: Mapping[Path, str]) -> dict[Path, str]:
    """Return the stored digests of files that have not changed."""
    stored = {}
    with suppress(sqlite3.Error), _opened(cache, "?mode=ro") as base:
        for path, state in states.items():
            row = base.execute("SELECT state, digest FROM digests WHERE path = ?", [_key(path)]).fetchone()
            if row is not None and state and row[0] == state:
                stored[path] = row[1]
    return stored


def _save(cache: Path, rows: Sequence[tuple[bytes, str, str]]) -> None:
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
        raise sqlite3.OperationalError("reading from a pipe would wait forever")
    with closing(sqlite3.connect(path.as_uri() + mode, uri=True, timeout=PATIENCE_SECONDS)) as base, base:
        # Many rows are read under one lock.
        base.execute("BEGIN")
        yield base

"""`headstart cache`: show and delete stored data."""

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from headstart.output.errors import UserError, explain_write_errors
from headstart.output.printable import print_lines, say
from headstart.output.tables import print_table
from headstart.store.cache import cache_folder
from headstart.store.feature_table import ABOUT, TABLES
from headstart.store.part_file import SUFFIX, DamagedError, Part

# Folders of the cache whose entries are shown and removed one by one, by kind.
FOLDERS = {"features": TABLES, "downloads": "datasets"}
DAY = 24 * 3600
DIGITS = 12
DIGEST = re.compile(rf"\b([0-9a-f]{{{DIGITS}}})[0-9a-f]{{{64 - DIGITS}}}\b")


@dataclass(frozen=True)
class Entry:
    """A file or folder that is removed as a whole.

    Attributes:
        kind: `features` or `downloads`.
        name: Its name; the first digits of their digest for features.
        path: The file or folder.
        size: Bytes.
        used: Time when features were last used, or a download was last written, in seconds since 1970.
        content: What it holds, in a few words.
    """

    kind: str
    name: str
    path: Path
    size: int
    used: float
    content: str


def cache(remove: str | list[str] | None = None, cache_dir: str | None = None) -> list[Entry]:
    """Show what is stored on this machine, or remove some of it.

    Removed features are computed again when they are needed, and removed downloads are fetched again. Do not remove a
    download while a run reads it.

    Args:
        remove: Names or kinds to remove: features, downloads.
        cache_dir: Folder of the cache. The default is the environment variable HEADSTART_CACHE, or else a folder in the
            user's cache directory.

    Returns:
        What was shown or removed.

    Raises:
        UserError: There is nothing of a name, a process is using it, or it cannot be removed.
    """
    folder = cache_folder(cache_dir)
    entries = sorted(_entries(folder), key=lambda entry: ([*FOLDERS].index(entry.kind), -entry.size))
    if remove is None:
        _show(entries, folder)
        return entries

    removed = _choose(entries, [remove] if isinstance(remove, str) else remove)
    for entry in removed:
        _require_idle(entry)
    for entry in removed:
        _delete(entry)
        say(f"removed {entry.kind} {entry.name}: {_readable(entry.size)}")
    say(f"{_readable(sum(entry.size for entry in removed))} freed")
    return removed


def _entries(folder: Path) -> Iterator[Entry]:
    for kind, inside in FOLDERS.items():
        for path in (folder / inside).iterdir() if (folder / inside).is_dir() else ():
            # Names of locks and incomplete files begin with a dot.
            if path.name[0] == ".":
                continue
            states = []
            for part in (path, *path.rglob("*")):
                # A process that is at work may remove a file.
                with suppress(FileNotFoundError):
                    states.append(part.lstat())
            size, used = sum(state.st_size for state in states), max((state.st_mtime for state in states), default=0.0)
            if kind == "features":
                yield Entry(kind, path.name[:DIGITS], path, size, used, _describe_table(path))
            else:
                yield Entry(kind, path.name, path, size, used, "")


def _describe_table(path: Path) -> str:
    """Return the number of rows of a table and what they are; what cannot be read does not count."""
    rows, kind = 0, "an unknown kind"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kind = DIGEST.sub(r"\1", str(json.loads((path / ABOUT).read_text())["rows"]))
    for part in path.glob(f"*{SUFFIX}"):
        with suppress(OSError, DamagedError):
            rows += len(Part(part).digests)
    return f"{rows} rows of {kind}"


def _show(entries: list[Entry], folder: Path) -> None:
    rows = [["name", "kind", "size", "days", "holds"]]
    for entry in entries:
        days = int((time.time() - entry.used) / DAY)
        rows.append([entry.name, entry.kind, _readable(entry.size), str(days), entry.content])
    if entries:
        print_table("Stored on this machine", rows, "days: since features were last used, or downloads last written")

    sizes = {kind: sum(entry.size for entry in entries if entry.kind == kind) for kind in FOLDERS}
    total = [f"{kind} {_readable(size)} in {folder / FOLDERS[kind]}" for kind, size in sizes.items() if size]
    print_lines([", ".join(total) or f"nothing is stored in {folder}"])


def _choose(entries: Iterable[Entry], names: list[str]) -> list[Entry]:
    """Return the entries of some names or kinds."""
    by_name = {name: [entry for entry in entries if name in (entry.name, entry.kind)] for name in names}
    for name, matches in by_name.items():
        if not matches and name not in FOLDERS:
            kinds = ", ".join(FOLDERS)
            raise UserError(f"remove: {name!r} does not exist; headstart cache lists all names, the kinds are {kinds}")
    return list(dict.fromkeys(entry for matches in by_name.values() for entry in matches))


def _require_idle(entry: Entry) -> None:
    """Raise an error if a process uses the entry: it holds a lock in it."""
    beside = entry.path.with_name(f".{entry.path.name}.lock")  # the lock of a download
    for path in (*entry.path.rglob("*.lock"), *([beside] if beside.exists() else [])):
        try:
            with FileLock(path, timeout=0):
                pass
        except (Timeout, OSError) as error:
            raise UserError(f"remove: a process is using {entry.name!r}; wait until it has ended") from error


def _delete(entry: Entry) -> None:
    with explain_write_errors(f"remove: {str(entry.path)!r}", "make it writable"):
        if not entry.path.is_dir() or entry.path.is_symlink():
            entry.path.unlink()
            return
        # A killed removal leaves a folder of this name, which nothing finds.
        removed = entry.path.with_name(f".removed-{entry.path.name}")
        shutil.rmtree(removed, ignore_errors=True)
        shutil.rmtree(entry.path.rename(removed))


def _readable(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"

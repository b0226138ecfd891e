"""`headstart cache`: show and delete stored data."""

import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from jsonargparse.typing import NonNegativeFloat

from headstart.output.errors import UserError, reason_of
from headstart.output.printable import print_lines, say
from headstart.output.tables import print_table
from headstart.store import ledger, ledger_file
from headstart.store.cache import cache_folder
from headstart.store.feature_table import ABOUT, TABLES
from headstart.store.part_file import SUFFIX, DamagedError, Part

# Folders of the cache whose entries are removed one by one. Other folders are removed as a whole.
FOLDERS = {"features": TABLES, "downloads": "datasets"}
KINDS = (*FOLDERS, "ledgers", "others")
LEDGER = (*(f"{ledger_file.FILE}{end}" for end in ("", "-journal", "-shm", "-wal")), ledger.HOLDERS)
DAY = 24 * 3600
DIGITS = 12
DIGEST = re.compile(rf"\b([0-9a-f]{{{DIGITS}}})[0-9a-f]{{{64 - DIGITS}}}\b")


@dataclass(frozen=True)
class Entry:
    """Files that are removed together.

    Attributes:
        kind: One of `features`, `downloads`, `ledgers` and `others`.
        name: Its name; the first digits of their digest for features.
        path: The file or folder.
        parts: Paths that are removed: the path itself, or the files of a ledger.
        size: Bytes.
        used: Time when features were last used, or others last written, in seconds since 1970.
        content: What it holds, in a few words.
    """

    kind: str
    name: str
    path: Path
    parts: tuple[Path, ...]
    size: int
    used: float
    content: str = ""


def cache(
    remove: str | list[str] | None = None,
    older_than: NonNegativeFloat = 0.0,
    cache_dir: str | None = None,
    ledgers: str = "runs",
) -> list[Entry]:
    """Show what is stored on this machine, or remove some of it.

    Removed features are computed again when they are needed, and removed downloads are fetched again. Do not remove a
    download while a run reads it. A ledger holds results: measuring its traces again takes as long as the first time.
    The kind `others` holds scores, digests of files, and widths of embeddings.

    Args:
        remove: Names or kinds to remove: features, downloads, ledgers, others.
        older_than: Show or remove only what was last used or written at least this many days ago.
        cache_dir: Folder of the cache. The default is the environment variable HEADSTART_CACHE, or else a folder in the
            user's cache directory.
        ledgers: Folder to search for ledgers, besides the one in HEADSTART_LEDGER.

    Returns:
        What was shown or removed.

    Raises:
        UserError: There is nothing of a name, a process is using it, or it cannot be removed.
    """
    folder = cache_folder(cache_dir)
    entries = sorted(_entries(folder, Path(ledgers)), key=lambda entry: (KINDS.index(entry.kind), -entry.size))
    named = entries if remove is None else _choose(entries, [remove] if isinstance(remove, str) else remove)
    chosen = [entry for entry in named if not older_than or entry.used < time.time() - older_than * DAY]
    if remove is None:
        _show(chosen, folder)
        return chosen

    for entry in chosen:
        _require_idle(entry)
    for entry in chosen:
        _delete(entry)
        say(f"removed {entry.kind} {entry.name}: {_readable(entry.size)}")
    say(f"{_readable(sum(entry.size for entry in chosen))} freed")
    return chosen


def _entries(folder: Path, runs: Path) -> Iterator[Entry]:
    for path in _visible(folder / FOLDERS["features"]):
        yield Entry("features", path.name[:DIGITS], path, (path,), *_measure([path]), _describe_table(path))
    for path in _visible(folder / FOLDERS["downloads"]):
        yield Entry("downloads", path.name, path, (path,), *_measure([path]))
    for path in _visible(folder):
        if path.name not in FOLDERS.values():
            yield Entry("others", path.name, path, (path,), *_measure([path]))
    for path in _ledgers(runs):
        # Other files may lie beside those of the ledger.
        files = [path / name for name in LEDGER if (path / name).exists()]
        yield Entry("ledgers", str(path), path, tuple(files), *_measure(files), _describe_ledger(path))


def _visible(folder: Path) -> list[Path]:
    """Return the content of a folder without locks and incomplete files, whose names begin with a dot."""
    return [path for path in folder.iterdir() if path.name[0] != "."] if folder.is_dir() else []


def _ledgers(runs: Path) -> list[Path]:
    named = os.environ.get("HEADSTART_LEDGER")
    found = [*runs.rglob(ledger_file.FILE), *([Path(named) / ledger_file.FILE] if named else [])]
    return sorted({path.parent.absolute(): path.parent for path in found if path.is_file()}.values())


def _measure(parts: Sequence[Path]) -> tuple[int, float]:
    """Return the bytes that files and folders take, and the time when one of them was last written."""
    states = []
    for part in parts:
        for each in (part, *part.rglob("*")):
            # A process that is at work may remove a file.
            with suppress(FileNotFoundError):
                states.append(each.lstat())
    return sum(state.st_size for state in states), max((state.st_mtime for state in states), default=0.0)


def _describe_table(path: Path) -> str:
    """Return the number of rows of a table and what they are; what cannot be read does not count."""
    rows, kind = 0, "an unknown kind"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kind = DIGEST.sub(r"\1", str(json.loads((path / ABOUT).read_text())["rows"]))
    for part in path.glob(f"*{SUFFIX}"):
        with suppress(OSError, DamagedError):
            rows += len(Part(part).digests)
    return f"{rows} rows of {kind}"


def _describe_ledger(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{(path / ledger_file.FILE).absolute().as_uri()}?mode=ro", uri=True)) as base:
            return f"{base.execute('SELECT count(*) FROM traces').fetchone()[0]} traces"
    except sqlite3.Error as error:
        return f"cannot be read ({error})"


def _show(entries: list[Entry], folder: Path) -> None:
    rows = [["name", "kind", "size", "days", "holds"]]
    for entry in entries:
        days = int((time.time() - entry.used) / DAY)
        rows.append([entry.name, entry.kind, _readable(entry.size), str(days), entry.content])
    if entries:
        print_table("Stored on this machine", rows, "days: since features were last used, or others last written")

    sizes = {kind: sum(entry.size for entry in entries if entry.kind == kind) for kind in KINDS}
    folders = {kind: folder / inside for kind, inside in FOLDERS.items()} | {"others": folder}
    total = ", ".join(
        f"{kind} {_readable(size)}" + (f" in {folders[kind]}" if kind in folders else "")
        for kind, size in sizes.items()
        if size
    )
    print_lines([total or f"nothing is stored in {folder}"])


def _choose(entries: Iterable[Entry], names: list[str]) -> list[Entry]:
    """Return the entries of some names or kinds."""
    chosen = {name: [entry for entry in entries if name in (entry.name, entry.kind)] for name in names}
    for name, matches in chosen.items():
        if not matches and name not in KINDS:
            kinds = ", ".join(KINDS)
            raise UserError(f"remove: {name!r} does not exist; headstart cache lists all names, the kinds are {kinds}")
    return list(dict.fromkeys(entry for matches in chosen.values() for entry in matches))


def _require_idle(entry: Entry) -> None:
    """Raise an error if a process uses the entry: it holds a lock in it."""
    beside = entry.path.with_name(f".{entry.path.name}.lock")  # the lock of a download
    locks = [path for part in entry.parts for path in part.rglob("*.lock") if path.is_file()]
    for path in (*locks, *([beside] if beside.exists() else [])):
        try:
            with FileLock(path, timeout=0):
                pass
        except (Timeout, OSError) as error:
            raise UserError(f"remove: a process is using {entry.name!r}; wait until it has ended") from error


def _delete(entry: Entry) -> None:
    try:
        for part in entry.parts:
            if part.is_dir() and not part.is_symlink():
                # A killed removal leaves a folder of this name, which nothing finds.
                removed = part.with_name(f".removed-{part.name}")
                shutil.rmtree(removed, ignore_errors=True)
                shutil.rmtree(part.rename(removed))
            else:
                part.unlink()
        if entry.path not in entry.parts and not any(entry.path.iterdir()):
            entry.path.rmdir()
    except OSError as error:
        raise UserError(f"remove: {str(entry.path)!r} cannot be removed ({reason_of(error)})") from error


def _readable(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"

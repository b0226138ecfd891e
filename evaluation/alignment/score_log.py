"""The durable log of scores: one line of JSON per score."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from headstart.output.errors import UserError
from headstart.output.home import expand_home

LOG = "scores.jsonl"
# The score that is being put in place.
PENDING = "scores.pending.json"


def log_folder(chosen: str | None, output: Path) -> Path:
    """Choose the folder of the log: the one that the user named, else that of HACKATHON_LOG_DIR, else `output`."""
    return expand_home(chosen or os.environ.get("HACKATHON_LOG_DIR") or output)


@dataclass(frozen=True)
class Placement:
    """How the file of a score comes into its place.

    Attributes:
        path: The file.
        sha256: Digest of what it will hold.
        place: Puts it there.
    """

    path: Path
    sha256: str
    place: Callable[[], None]


def append_score(folder: Path, record: Mapping[str, Any], placement: Placement | None = None) -> Path:
    """Append one score to the log; once this returns, the line is on the disk.

    The line is written at once, by one process at a time. A line that a crash has left without its end is ended first,
    so that what follows it stays readable.

    The score's own file is put in place before, once what is to be logged is noted beside the log. Where a kill comes
    between the two, the next score that is logged there logs this one first, unless it is the same one, computed again.

    Args:
        folder: Folder of the log, created where it is missing.
        record: The score; JSON values, without NaN and infinity.
        placement: The score's own file, if it has one.

    Returns:
        The log, `scores.jsonl`.

    Raises:
        OSError: The score's own file cannot be put in place; the log is as it was before.
        UserError: The line could not be written whole; the log is as it was before.
    """
    line = json.dumps(dict(record), allow_nan=False, sort_keys=True).encode() + b"\n"
    path, pending = folder / LOG, folder / PENDING
    with _naming(path):
        folder.mkdir(parents=True, exist_ok=True)
    # Where the folder is on a network, appends of several machines may interleave without a lock.
    lock = FileLock(folder / f"{LOG}.lock")
    with _naming(path):
        lock.acquire()
    try:
        with _naming(path):
            logged = _settle(path, pending, record, placement)
            if placement is not None:
                noted = {"line": line.decode(), "path": str(placement.path.absolute()), "sha256": placement.sha256}
                _write_durably(pending, json.dumps(noted))
        try:
            if placement is not None:
                placement.place()
            if not logged:
                with _naming(path):
                    _append(path, line)
        finally:
            pending.unlink(missing_ok=True)
    finally:
        lock.release()
    return path


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"log_dir: no score can be appended to {str(path)!r} ({error.strerror or error}); "
            "choose another folder with --log_dir or HACKATHON_LOG_DIR"
        ) from error


def _settle(path: Path, pending: Path, record: Mapping[str, Any], placement: Placement | None) -> bool:
    """Log the score that was put in place before its process was killed, unless the same one is about to replace it.

    Returns:
        Whether that same one is in the log already.
    """
    if not pending.is_file():
        return False
    try:
        noted = json.loads(pending.read_text())
        line, result, sha256 = noted["line"].encode(), Path(noted["path"]), noted["sha256"]
        before = json.loads(line)
    except (ValueError, TypeError, KeyError):
        return False  # Killed while it was noted, and so before anything was put in place.
    again = placement is not None and placement.path.absolute() == result and _same(before, record)
    in_place = result.is_file() and hashlib.sha256(result.read_bytes()).hexdigest() == sha256
    logged = path.read_bytes() if path.is_file() else b""
    if again and logged.endswith(line):
        return True
    if in_place and not again and not logged.endswith(line):
        # A part of the line may be there.
        torn = logged[logged.rfind(b"\n") + 1 :]
        if torn and line.startswith(torn):
            os.truncate(path, len(logged) - len(torn))
        _append(path, line)
    return False


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two records are of the same score, whenever it was computed."""
    first, second = ({key: value for key, value in each.items() if key != "time"} for each in (one, other))
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _write_durably(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        # A pipe would have whoever writes to it wait.
        raise OSError(errno.EINVAL, f"{path.name} is no regular file")
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        size = state.st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        whole = b"\n" + line if torn else line
        try:
            written = os.write(descriptor, whole)
            if written != len(whole):
                raise OSError(errno.ENOSPC, f"{written} of {len(whole)} bytes written")
            os.fsync(descriptor)
        except OSError:
            # A line that is reported as not logged must not be read as a score later.
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
    if size == 0:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

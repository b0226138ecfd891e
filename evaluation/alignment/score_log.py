"""The durable log of scores: one line of JSON per score."""

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
# The score whose file is being written.
PENDING = "scores.pending.json"


def log_folder(option: str | None, output: Path) -> Path:
    """Return the folder of the log: that of the option, else that of HACKATHON_LOG_DIR, else `output`."""
    return expand_home(option or os.environ.get("HACKATHON_LOG_DIR") or output)


@dataclass(frozen=True)
class ScoreFile:
    """The file of a score that is written together with its line in the log.

    Attributes:
        path: The file.
        sha256: Digest of its content.
        commit: Moves the file to its path.
    """

    path: Path
    sha256: str
    commit: Callable[[], None]


def append_score(folder: Path, record: Mapping[str, Any], file: ScoreFile | None = None) -> Path:
    """Append one score to the log; once this returns, the line is on the disk.

    The line is written in one piece, by one process at a time. An unfinished line that a crash has left is ended first,
    so that the following lines stay readable.

    The score's own file is committed before, after its record is noted beside the log. If the process is killed between
    the two, the next call first logs the noted score. It does not if its own score is the same, computed again.

    Args:
        folder: Folder of the log, created where it is missing.
        record: The score; JSON values, without NaN and infinity.
        file: The score's own file, if it has one.

    Returns:
        The log, `scores.jsonl`.

    Raises:
        OSError: The score's own file cannot be committed; the log is as it was before.
        UserError: The line could not be written whole; the log is as it was before.
    """
    line = json.dumps(dict(record), allow_nan=False, sort_keys=True).encode() + b"\n"
    path, pending = folder / LOG, folder / PENDING
    with _explain_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        # On a network disk, appends of several machines may interleave without a lock.
        lock = FileLock(folder / f"{LOG}.lock")
        lock.acquire()

    try:
        with _explain_errors(path):
            is_logged = _recover(path, pending, record, file)
            if file is not None:
                note = {"line": line.decode(), "path": str(file.path.absolute()), "sha256": file.sha256}
                _write_durably(pending, json.dumps(note))
        try:
            if file is not None:
                file.commit()
            if not is_logged:
                with _explain_errors(path):
                    _append(path, line)
        finally:
            pending.unlink(missing_ok=True)
    finally:
        lock.release()
    return path


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Turn an error of the system into a UserError that names the log."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"log_dir: no score can be appended to {str(path)!r} ({error.strerror or error}); "
            "choose another folder with --log_dir or HACKATHON_LOG_DIR"
        ) from error


def _recover(path: Path, pending: Path, record: Mapping[str, Any], file: ScoreFile | None) -> bool:
    """Log the score whose process was killed after its file was committed, unless the same score replaces it now.

    Returns:
        Whether the same score is in the log already.
    """
    if not pending.is_file():
        return False
    try:
        note = json.loads(pending.read_text())
        line, result, sha256 = note["line"].encode(), Path(note["path"]), note["sha256"]
        noted_record = json.loads(line)
    except (ValueError, TypeError, KeyError):
        return False  # Killed while the note was written, and so before the file was committed.

    is_same = file is not None and file.path.absolute() == result and _is_same_score(noted_record, record)
    is_committed = result.is_file() and hashlib.sha256(result.read_bytes()).hexdigest() == sha256
    logged = path.read_bytes() if path.is_file() else b""
    if logged.endswith(line):
        return is_same
    if is_committed and not is_same:
        # A part of the line may have been written.
        torn = logged[logged.rfind(b"\n") + 1 :]
        if torn and line.startswith(torn):
            os.truncate(path, len(logged) - len(torn))
        _append(path, line)
    return False


def _is_same_score(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records are of the same score, regardless of the time."""
    first, second = ({key: value for key, value in each.items() if key != "time"} for each in (one, other))
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _write_durably(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        # Writing to a pipe would block.
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        size = state.st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        content = b"\n" + line if torn else line

        try:
            written = os.write(descriptor, content)
            if written != len(content):
                raise OSError(errno.ENOSPC, f"{written} of {len(content)} bytes written")
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

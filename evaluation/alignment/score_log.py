"""The durable log of scores: one line of JSON per score."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from output.errors import UserError

LOG = "scores.jsonl"


def log_folder(chosen: str | None, output: Path) -> Path:
    """Choose the folder of the log: the one that the user named, else that of HACKATHON_LOG_DIR, else `output`."""
    return Path(chosen or os.environ.get("HACKATHON_LOG_DIR") or output).expanduser()


def append_score(folder: Path, record: Mapping[str, Any]) -> Path:
    """Append one score to the log; once this returns, the line is on the disk.

    The line is written at once, by one process at a time. A line that a crash has left without its end is ended first,
    so that what follows it stays readable.

    Args:
        folder: Folder of the log, created where it is missing.
        record: The score; JSON values, without NaN and infinity.

    Returns:
        The log, `scores.jsonl`.

    Raises:
        UserError: The line could not be written whole; the log is as it was before.
    """
    line = json.dumps(dict(record), allow_nan=False, sort_keys=True).encode() + b"\n"
    path = folder / LOG
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Where the folder is on a network, appends of several machines may interleave without a lock.
        with FileLock(folder / f"{LOG}.lock"):
            _append(path, line)
    except OSError as error:
        raise UserError(
            f"log_dir: no score can be appended to {str(path)!r} ({error.strerror or error}); "
            "choose another folder with --log_dir or HACKATHON_LOG_DIR"
        ) from error
    return path


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
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

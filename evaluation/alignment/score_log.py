"""The durable log of scores: one line of JSON per score, appended and synchronised to the disk."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from headstart.output.arguments import expand_home
from headstart.output.errors import UserError, reason_of

LOG = "scores.jsonl"


def log_folder(option: str | None, output: Path) -> Path:
    """Return the folder of the log: that of the option, else that of HACKATHON_LOG_DIR, else `output`."""
    return expand_home(option or os.environ.get("HACKATHON_LOG_DIR") or output)


def append_score(folder: Path, record: Mapping[str, Any]) -> Path:
    """Append one score to the log; once this returns, the line is on the disk.

    One process appends at a time. A line that a crash or a full disk has cut is removed first, so that the whole log
    stays readable; the log is read for that, which takes milliseconds for thousands of scores.

    Args:
        folder: Folder of the log, created where it is missing.
        record: The score; JSON values, without NaN and infinity.

    Returns:
        The log, `scores.jsonl`.

    Raises:
        UserError: The line could not be written.
    """
    line = json.dumps(dict(record), allow_nan=False, sort_keys=True).encode() + b"\n"
    path = folder / LOG
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # Writing to a pipe would block.
            raise OSError("it is not a regular file")
        # On a network disk, appends of several machines may interleave without a lock.
        with FileLock(folder / f"{LOG}.lock"), path.open("ab+") as file:
            is_new = not file.tell()
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            if is_new:
                _synchronise_folder(folder)
    except OSError as error:
        raise UserError(
            f"log_dir: no score can be appended to {str(path)!r} ({reason_of(error)}); "
            "choose another folder with --log_dir or HACKATHON_LOG_DIR"
        ) from error
    return path


def _synchronise_folder(folder: Path) -> None:
    """Synchronise the names of a folder's files to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Which files ran in this process, and which files ran them: by imports, `exec`, `eval` and `runpy`."""

import os
import sys
from contextlib import suppress
from typing import Any

# Pairs of the file that executes something, and the file of what it executes; in place of a file, a text such as
# `<string>`.
executed: set[tuple[str, str]] = set()
_RECORDING: list[bool] = []


def record_executed_code() -> None:
    """Record what is executed from now on. Python cannot stop this again, so it begins once."""
    if not _RECORDING:
        _RECORDING.append(True)
        sys.addaudithook(_record)


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "exec":
        return
    files = sys._getframe(1).f_code.co_filename, arguments[0].co_filename
    # The working folder may have been removed.
    with suppress(OSError):
        executed.add((_absolute(files[0]), _absolute(files[1])))


def _absolute(file: str) -> str:
    return file if file.startswith("<") else os.path.abspath(file)  # noqa: PTH100 - much faster than Path

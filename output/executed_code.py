"""Which files ran in this process, and which files ran them: by imports, `exec`, `eval` and `runpy`."""

import os
import sys
from contextlib import suppress
from typing import Any

# Pairs of the file that executes something, and the file of what it executes; in place of a file, a text such as
# `<string>`. Other threads may add some.
executed: set[tuple[str, str]] = set()
_RECORDING: list[bool] = []


def record_executed_code() -> None:
    """Record what is executed from now on. Python cannot stop this again, so it begins once."""
    if not _RECORDING:
        _RECORDING.append(True)
        sys.addaudithook(_record)


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("exec", "function.__new__"):
        return
    # What is typed at a prompt has no caller. An error here would end whatever is executed, as in a removed folder.
    with suppress(Exception):
        caller = sys._getframe().f_back
        executed.add(
            (_absolute(caller.f_code.co_filename if caller else "<prompt>"), _absolute(arguments[0].co_filename))
        )


def _absolute(file: str) -> str:
    return file if file.startswith("<") else os.path.abspath(file)  # noqa: PTH100 - much faster than Path

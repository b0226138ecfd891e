"""A user's mistake in a command that runs in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def error_of(call: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line on the error stream with which a command ends, and exit code 1."""
    with pytest.raises(SystemExit) as end:
        call()
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error

"""A user's mistake in a command that runs in this process."""

from collections.abc import Callable

import pytest


def error_line(capsys: pytest.CaptureFixture[str], run: Callable[[], object], code: int | None = None) -> str:
    """Return the only line on the error stream of a command that fails, with this exit code if it is set."""
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code in ((1, 2) if code is None else (code,))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line

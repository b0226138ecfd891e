"""A user's mistake in a command that runs in this process, or in a call."""

from collections.abc import Callable, Iterable

import pytest

from headstart.output.errors import UserError


def error_line(capsys: pytest.CaptureFixture[str], run: Callable[[], object], code: int | None = None) -> str:
    """Return the only line on the error stream of a command that fails, with this exit code if it is set."""
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code in ((1, 2) if code is None else (code,))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


def refusal(run: Callable[[], object]) -> str:
    """Return the one line with which a call refuses what it is given."""
    with pytest.raises(UserError) as caught:
        run()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def unnamed(refused: Iterable[tuple[Callable[[], object], str]]) -> list[str]:
    """Return the lines of calls that are refused, as far as they lack what they should say."""
    lines = [(refusal(run), words) for run, words in refused]
    return [f"{line} [lacks {words}]" for line, words in lines if words not in line]

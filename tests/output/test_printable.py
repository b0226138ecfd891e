"""No text that is printed or drawn holds what a terminal obeys, or what is not seen."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.output.errors import UserError
from headstart.output.parser import one_line_errors
from headstart.output.printable import print_lines, print_written, printable, say
from headstart.output.progress import Progress
from headstart.output.tables import Table, print_tables

HOSTILE = "[bold red]vit[/b]\u202e\u2066\u200b\ufeff\x1b[31m\x9b\x07"
SHOWN = r"[bold red]vit[/b]\u202e\u2066\u200b\ufeff\x1b[31m\x9b\x07"


def show_progress() -> None:
    with Progress(HOSTILE, 100, "stimuli") as progress:
        progress._printed -= 60
        progress.show(50, HOSTILE)


def fail() -> None:
    with pytest.raises(SystemExit), one_line_errors():
        raise UserError(f"models: {HOSTILE} is unknown")


TELL: list[Callable[[], object]] = [
    lambda: print_written([Path(HOSTILE)]),
    show_progress,
    fail,
    lambda: print_tables([Table(HOSTILE, [["", HOSTILE], [HOSTILE, HOSTILE]], ("",), HOSTILE, [HOSTILE])]),
    lambda: print_lines([HOSTILE]),
    lambda: say(HOSTILE),
]


@pytest.mark.parametrize("terminal", [False, True])
def test_names_are_printed_as_what_they_are(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COLUMNS": "400", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    for tell in TELL:
        tell()
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert SHOWN in text
        assert not set("\u202e\u2066\u200b\ufeff\x9b\x07") & set(text)
        assert "\x1b[31m" not in text


def test_printable_characters_stay() -> None:
    text = "caf\u00e9 \u9ce5 \U0001f600 [1] 50 % \u2212 e\u0301"
    assert printable(text) == text
    assert printable("a\nb\udc80") == r"a\nb\udc80"


def test_characters_that_an_output_cannot_encode_are_replaced() -> None:
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="ascii") as stream:
        say("caf\u00e9 \u2212 5\u20139\u2026", stream)
        stream.flush()
        assert written.getvalue() == b"caf? - 5-9.\n"

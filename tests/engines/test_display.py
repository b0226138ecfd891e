"""What is shown of tasks: on a terminal a bar and a line for each that runs, else plain lines."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from engines import display
from engines.display import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Display("my [sweep]", 2) as shown:
        shown.started("a", "host")
        shown.said("a", "training: [bold] 3/9")
        time.sleep(0.4)
        assert shown.ended("a", "lost", "killed", again=True) >= 0.4
        shown.started("a", "host")
        shown.ended("a", "complete", "", again=False)
        time.sleep(0.4)
    return stream.getvalue()


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "a: begun on host",
        "[0/2] a: lost (killed), it is begun again",
        "a: begun on host",
        "[1/2] a: complete, after 0.0 s",
    ]
    assert run(monkeypatch, io.StringIO()).splitlines() == lines
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    assert "a: training: [bold] 3/9" in run(monkeypatch, io.StringIO()).splitlines()


def test_a_bar_and_what_runs_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    told = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", run(monkeypatch, Terminal()))
    assert re.search(r"my \[sweep\] .*0/2", told)
    assert re.search(r"my \[sweep\] .*1/2", told)
    assert "  a: training: [bold] 3/9" in told
    assert "[1/2] a: complete, after 0.0 s" in told

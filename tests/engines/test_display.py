"""The display of tasks: on a terminal a bar and a line for each that runs, else plain lines."""

import io
import re
import sys
import time
from collections.abc import Callable

import pytest

from headstart.engines import display
from headstart.engines.display import Display
from headstart.engines.task import Task, TaskMessage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Display("my [sweep]", 2) as shown:
        shown.receive(Task("a", "", None), TaskMessage("started", "host"))
        shown.receive(Task("a", "", None), TaskMessage("printed", "training: [bold] 3/9"))
        time.sleep(0.4)
        assert shown.show_end("a", "lost", "killed", again=True) >= 0.4
        shown.receive(Task("a", "", None), TaskMessage("started", "host"))
        shown.show_end("a", "complete", "", again=False)
        time.sleep(0.4)
    return stream.getvalue()


@pytest.mark.slow
def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "a: started on host",
        "[0/2] a: lost (killed), it is restarted",
        "a: started on host",
        "[1/2] a: complete, after 0.0 s; about 0:00:00 left",
    ]
    assert run(monkeypatch, io.StringIO()).splitlines() == lines
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    assert "a: training: [bold] 3/9" in run(monkeypatch, io.StringIO()).splitlines()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_time_left_is_reported_however_long_tasks_take(
    stream: Callable[[], io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, now = stream(), [0.0]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr("headstart.engines.display.time.monotonic", lambda: now[0])
    with Display("sweep", 4) as shown:
        for name in "ab":
            shown.receive(Task(name, "", None), TaskMessage("started", "host"))
            now[0] += 100
            shown.show_end(name, "complete", "", again=False)
        if shown._live is not None:
            shown._live.refresh()
    assert "[1/4] a: complete, after 100.0 s; about 0:05:00 left" in output.getvalue()
    assert "[2/4] b: complete, after 100.0 s; about 0:03:20 left" in output.getvalue()
    # The bar has a line of its own.
    assert (re.search(r"2/4.*0:03:20 left", output.getvalue().rpartition("[2/4]")[2]) is not None) == output.isatty()


def test_an_error_of_a_machine_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", output := io.StringIO())
    with Display("sweep", 3) as shown:
        for name, where in (("a", "one"), ("b", "one"), ("c", "other")):
            shown.receive(Task(name, "", None), TaskMessage("started", where))
            shown.show_end(name, "failed", "root: there is no folder", again=False)
    ends = [line.partition(",")[0] for line in output.getvalue().splitlines() if line.startswith("[")]
    assert ends == [
        "[1/3] a: failed (root: there is no folder)",
        "[2/3] b: failed (as a)",
        "[3/3] c: failed (root: there is no folder)",
    ]


def test_a_bar_and_what_runs_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", run(monkeypatch, Terminal()))
    assert re.search(r"my \[sweep\] .*0/2", output)
    assert re.search(r"my \[sweep\] .*1/2", output)
    assert "  a: training: [bold] 3/9" in output
    assert "[1/2] a: complete, after 0.0 s" in output


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_silent_tasks_are_shown(stream: Callable[[], io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    output, now = stream(), [0.0]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr("headstart.engines.display.time.monotonic", lambda: now[0])
    with Display("sweep", 2) as shown:
        for name in "ab":
            shown.receive(Task(name, "", None), TaskMessage("started", "host"))
        for minute in range(12):
            now[0] = 60.0 * minute
            shown.receive(Task("b", "", None), TaskMessage("ledger", ("read",)))
            shown.waited()
            assert shown.silence("a") == (f"silent for {minute} minutes" if minute >= 5 else "")
            assert shown.silence("b") == ""
        if shown._live is not None:
            shown._live.refresh()
    assert "a: silent for 11 minutes" in output.getvalue() or not output.isatty()
    lines = [line for line in output.getvalue().splitlines() if "silent" in line]
    assert lines == ["a: silent for 5 minutes", "a: silent for 10 minutes"] or output.isatty()

"""Progress is a line now and then where nobody watches, and a bar on a terminal."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.output.progress import Progress, track

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that shows its only element."""
    now = [100.0]
    monkeypatch.setattr("headstart.output.progress.time.monotonic", lambda: now[0])
    return now


def test_lines_come_at_tenths_and_after_silence(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("rows", 1000, "photos") as shown:
        for done, seconds in ((50, 4), (110, 8), (120, 11), (390, 12), (395, 39), (1000, 40)):
            clock[0] = 100.0 + seconds
            shown.show(done, f"note {done}")
    assert capsys.readouterr().err.splitlines() == [
        "rows: 110/1,000 photos, 13.8/s, note 110, 0:08 passed, 1:05 left",
        # 390 is another tenth, but comes too soon after the line before; 395 makes up for it.
        "rows: 395/1,000 photos, 10.1/s, note 395, 0:39 passed, 1:00 left",
        "rows: 1,000/1,000 photos, 25/s, note 1000, 0:40 passed",
    ]


def test_quick_work_prints_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    assert [item * 2 for item in track([1, 2, 3], "quick", "things")] == [2, 4, 6]
    for _ in track([], "nothing", "things"):
        pass
    assert capsys.readouterr() == ("", "")


def run_on_terminal(term: str) -> str:
    """Run a short computation whose standard error is a terminal of a kind; give what it shows."""
    code = "from headstart.output.progress import track\nfor _ in track(range(3), '[red] rows', 'photos'): pass"
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=its, env=environment, check=True)
    os.close(its)
    shown = io.BytesIO()
    try:
        while part := os.read(ours, 4096):
            shown.write(part)
    except OSError:  # Linux's way to say that the other side is closed
        pass
    os.close(ours)
    return shown.getvalue().decode()


def test_a_terminal_has_a_bar() -> None:
    shown = run_on_terminal("xterm")
    assert "[red] rows" in shown
    assert "3/3 photos" in shown


def test_a_dumb_terminal_has_none() -> None:
    assert run_on_terminal("dumb") == ""

"""Progress is a line now and then where nobody watches, and a bar on a terminal."""

import pytest

from headstart.output.progress import Progress, track


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


def test_a_part_of_a_larger_whole_tells_the_time_that_is_left_of_the_whole(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("rows", 100, "photos", before=300, after=600) as shown:
        for done, seconds in ((20, 10), (100, 50)):
            clock[0] = 100.0 + seconds
            shown.show(done)
    assert capsys.readouterr().err.splitlines() == [
        "rows: 320/1,000 photos, 2/s, 0:10 passed, 5:40 left",
        "rows: 400/1,000 photos, 2/s, 0:50 passed, 5:00 left",
    ]


def test_quick_work_prints_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    assert [item * 2 for item in track([1, 2, 3], "quick", "things")] == [2, 4, 6]
    for _ in track([], "nothing", "things"):
        pass
    assert capsys.readouterr() == ("", "")

"""The progress of an extraction adds up steps, and says at the end what was computed and what was reused."""

import pytest

from headstart.datamodules.extraction_progress import DECODING, NETWORK, WRITING, ExtractionProgress, Step


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("headstart.datamodules.extraction_progress.time.monotonic", lambda: now[0])
    return now


def test_what_took_a_while_is_summed_up(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with ExtractionProgress("photos", 1000) as progress:
        progress.begin(400)
        progress.report(Step(100, 1, {DECODING: 1.0, NETWORK: 6.0, WRITING: 1.0}))
        progress.report(Step(300, 2, {DECODING: 1.0, NETWORK: 6.0, WRITING: 1.0}))
        clock[0] += 20
    assert capsys.readouterr().err.splitlines()[-1] == (
        "photos: 400 rows computed, 600 reused, 20 pictures a second "
        "(waiting for pictures 12%, network 75%, writing 12%, 3 unreadable)"
    )


def test_nothing_is_said_of_what_was_there_or_took_a_moment(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with ExtractionProgress("photos", 1000):
        clock[0] += 20
    with ExtractionProgress("photos", 1000) as progress:
        progress.begin(1)
        progress.report(Step(1))
        clock[0] += 1
    assert capsys.readouterr().err == ""


def test_an_error_is_not_summed_up(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    def compute() -> None:
        with ExtractionProgress("photos", 10) as progress:
            progress.begin(10)
            progress.report(Step(5))
            clock[0] += 20
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        compute()
    assert "computed" not in capsys.readouterr().err

"""A photo that changes for a moment of a first run leaves no row, remark or trace that intact photos would not give."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.store.json_digest import FILES, SEAL
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.changing_photos import FAULTS, watched
from headstart.tests.material.stored_rows import rows_in

Counts = dict[tuple[str, str, int], list[int]]
OPTIONS = [
    "--data.max_samples=5",
    "--data.on_bad_image=skip",
    "--data.backbone.weights=embedded",
    "--data.backbone.model_args={}",
]


def stored_counts(ledger: Path) -> Counts:
    """Return the finished traces of a ledger, by stream, method and ordering."""
    if not (ledger / "traces.sqlite").exists():
        return {}
    with LedgerReader(ledger) as reader:
        return {
            (stream, *key): counts.tolist()
            for stream in reader.streams()
            for key, counts in reader.traces(stream).counts.items()
        }


def scores(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return {key: value for key, value in document.items() if key not in ("times", "environment", SEAL, FILES)}


@pytest.mark.parametrize("trials", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_a_photo_that_changes_for_a_moment_of_a_first_run(
    trials: int, fit: Callable[..., Path], photo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, folder: str) -> dict[str, Any]:
        folders = (f"--data.cache_dir={tmp_path / name / 'cache'}", f"--results.ledger={tmp_path / name / 'ledger'}")
        return scores(fit(*OPTIONS, *folders, folder=f"{name}/{folder}"))

    with watched(photo_folder) as moments:
        clean = moments.run(lambda: run("clean", "run"))
        rows, counts = rows_in(tmp_path / "clean" / "cache"), stored_counts(tmp_path / "clean" / "ledger")
        assert len(rows) == 12
        assert len(counts) == 4
        random, passed, opened, changed = np.random.default_rng(0), moments.passed, moments.opened, 0
        for trial in range(trials):
            fault = FAULTS[list(FAULTS)[trial % len(FAULTS)]]
            # The photo is digested and then decoded; folders are listed before.
            first = int(random.integers(passed) if trial % 2 else opened - random.integers(3))
            last, place = first + int(random.integers(1, 4)), str(trial)
            during = moments.run(lambda: run(place, "first"), fault, first, last)  # noqa: B023
            changed += during != clean

            kept = rows_in(tmp_path / place / "cache")
            assert {key: kept[key] for key in rows.keys() & kept.keys()} == {
                key: rows[key] for key in rows.keys() & kept.keys()
            }
            traces = stored_counts(tmp_path / place / "ledger")
            assert {key: traces[key] for key in counts.keys() & traces.keys()} == {
                key: counts[key] for key in counts.keys() & traces.keys()
            }
            assert moments.run(lambda: run(place, "second")) == clean, (fault, first)  # noqa: B023
    assert changed
    assert "Traceback" not in capsys.readouterr().err

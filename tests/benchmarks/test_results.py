"""The pages of docs/results are made from runs, and say from which."""

import csv
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

import headstart
from headstart.tests.conftest import list_options, write_photos
from headstart.tests.material.root import require_checkout
from headstart.tests.material.sweeps import run, write

require_checkout()


@pytest.fixture(scope="module")
def results() -> Any:
    """Return the module, which imports leaderboards and reports."""
    return import_module("headstart.benchmarks.results")


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a sweep of two sources."""
    folder = tmp_path_factory.mktemp("results")
    options = list_options(write_photos(folder / "pictures"))
    widths = {"values": [{"width_mult": 0.25}, {"width_mult": 0.35}]}
    run(write(folder, [*options, "--data.orderings=4"], data__backbone__model_args=widths), folder / "plain")
    return folder


@pytest.mark.slow
def test_pages_are_made_from_runs(results: Any, sweeps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tuned.yaml").write_text("tuned: {mean: [pictures]}")
    results.main([str(sweeps / "plain")], tuned="tuned.yaml", output="pages")
    assert {path.name for path in Path("pages").iterdir()} == {"benchmark.md", "leaderboard.csv", "over_settings.png"}
    page = Path("pages", "benchmark.md").read_text()
    for stated in (
        f"Headstart {headstart.__version__}",
        torch.__version__.partition("+")[0],
        "the local suite",
        "2 settings of 1 targets, with 16 traces",
        f"Measured by {datetime.now(UTC):%-d %B %Y}",
    ):
        assert stated in page
    # The numbers are those of the leaderboard's own file.
    with Path("pages", "leaderboard.csv").open() as file:
        rows = list(csv.DictReader(file))
    best = [row for row in rows if row["rank_interval_low"] == "1"]
    assert best
    for row in best:
        assert f"`{row['method']}`" in page

"""The lines of NumPy and SciPy in docs/audit.md give the figures of the audit."""

import csv
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import evaluate
from headstart.evaluation.estimates import with_interval
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
TABLES = SHARED / "data" / "accuracy_tables"
PAPERS = SHARED / "data" / "stable_transfer"
PAGE = (ROOT / "docs" / "audit.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
# Metrics, the one that the page shows among them; the mean rank comes before.
METRICS = ["gbc", "log_me", "own"]


def write_table(path: Path) -> None:
    """Write a table of 6 sources and 9 targets, of which one is a source, in which the order on targets is alike."""
    generator = np.random.default_rng(0)
    sources, targets = [f"s{index}" for index in range(6)], ["s1", *(f"t{index}" for index in range(8))]
    performances = np.linspace(0.3, 0.8, 6)[:, None] + 0.15 * generator.normal(size=(6, 9))
    scores = performances + 0.2 * generator.normal(size=(3, 6, 9))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "source", "target", "score", "performance"])
        for (metric, source, target), score in np.ndenumerate(scores):
            writer.writerow([METRICS[metric], sources[source], targets[target], score, performances[source, target]])


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the lines of the page find, and what the audit does."""
    folder = tmp_path_factory.mktemp("audit")
    write_table(folder / "table.csv")
    options = ["--pool_size=4", "--logger=false", f"--output={folder}"]
    evaluate.main(["audit", f"--table={folder / 'table.csv'}", *options])
    return run_blocks(folder, BLOCKS), json.loads((folder / "audit.json").read_text())


def run_blocks(folder: Path, blocks: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.chdir(folder)
        for block in blocks:
            exec(compile(block, "audit.md", "exec"), names)
    return names


def test_each_figure_takes_ten_lines() -> None:
    assert len(BLOCKS) == 7
    for block in BLOCKS:
        lines = [line for line in block.splitlines() if line.strip() and not re.match("(from|import) ", line)]
        assert len(lines) <= 10
        assert all(len(line) <= 120 for line in lines)


def test_means_and_intervals_of_the_mean_rank(figures: tuple[dict[str, Any], dict[str, Any]]) -> None:
    names, document = figures
    expected = document["rankers"]["mean_rank"]["weighted_kendall"]
    assert names["mean"] == pytest.approx(expected["mean"], abs=1e-12)
    assert names["ci95"] == pytest.approx(expected["ci95"], abs=1e-12)
    per_target = dict(zip(names["targets"].tolist(), names["measured"], strict=True))
    assert per_target == pytest.approx(expected["per_target"], abs=1e-12)


def test_a_metric_by_every_measure_and_beside_the_mean_rank(figures: tuple[dict[str, Any], dict[str, Any]]) -> None:
    names, document = figures
    for index, measure in enumerate(["weighted_kendall", "kendall", "pearson", "rel_at_1"]):
        per_target = dict(zip(names["targets"].tolist(), names["by_measure"][:, index], strict=True))
        assert per_target == pytest.approx(document["rankers"]["log_me"][measure]["per_target"], abs=1e-12)
    expected = document["minus_mean_rank"]["log_me"]["weighted_kendall"]
    assert names["difference"].mean() == pytest.approx(expected["mean"], abs=1e-12)
    assert names["difference_ci95"] == pytest.approx(expected["ci95"], abs=1e-12)
    sources = dict(zip(names["targets"].tolist(), names["given"], strict=True))
    per_target = document["kendall_given_mean_rank"]["log_me"]["per_target"]
    assert any(value is not None for value in per_target.values())
    for target, value in per_target.items():
        # The lines divide by 0 where nothing is left.
        assert value is None or sources[target] == pytest.approx(value, abs=1e-12)


def test_leave_one_out_and_the_agreement_of_targets(figures: tuple[dict[str, Any], dict[str, Any]]) -> None:
    names, document = figures
    expected = document["leave_one_model_out"]["mean_rank"]["weighted_kendall"]
    assert names["without_each"] == pytest.approx(expected, abs=1e-12)
    assert names["rho"] == pytest.approx(document["ranks"]["mean_spearman"], abs=1e-12)
    assert names["kendalls_w"] == pytest.approx(document["ranks"]["kendalls_w"], abs=1e-12)


def test_setup_stability_and_win_rates(figures: tuple[dict[str, Any], dict[str, Any]]) -> None:
    names, document = figures
    assert names["stability"] == pytest.approx(document["setup_stability"], abs=1e-12)
    rates = {name: rates["average"] for name, rates in document["win_rate_percent"].items()}
    assert dict(zip(["mean_rank", *names["names"]], names["win_rates"], strict=True)) == pytest.approx(rates, abs=1e-9)


@pytest.mark.skipif(not TABLES.is_dir(), reason="needs the tables of HEADSTART_SHARED, by default ../shared")
@pytest.mark.parametrize(
    ("table", "mean"), [("supervised_full", 0.837), ("supervised_head", 0.616), ("self_supervised_full", 0.685)]
)
def test_mean_ranks_of_published_tables(table: str, mean: float, tmp_path: Path) -> None:
    (tmp_path / "table.csv").symlink_to(TABLES / f"{table}.csv")
    document = evaluate_audit(tmp_path)
    assert "None" not in (tmp_path / "out" / "report.md").read_text()
    expected = document["rankers"]["mean_rank"]["weighted_kendall"]
    assert round(expected["mean"], 3) == mean
    assert run_blocks(tmp_path, BLOCKS[:1])["mean"] == pytest.approx(expected["mean"], abs=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the tables of HEADSTART_SHARED, by default ../shared")
@pytest.mark.parametrize(
    ("scenario", "table", "pool_size", "stability"),
    [
        ("scenario 1", "source_datasets_table.csv", 11, {"target": 0.23, "measure": 0.53, "pool": 0.60}),
        ("scenario 2", "source_model_architectures_table.csv", 14, {"target": 0.62, "measure": 0.69, "pool": 0.80}),
    ],
)
def test_the_page_has_the_figures_of_the_papers_tables(
    scenario: str, table: str, pool_size: int, stability: dict[str, float], tmp_path: Path
) -> None:
    (tmp_path / "table.csv").symlink_to(PAPERS / table)
    document = evaluate_audit(tmp_path, f"--pool_size={pool_size}")
    # Agostinelli et al., ECCV 2022, published these in tables 2a and 3a.
    assert {name: round(value, 2) for name, value in document["setup_stability"].items()} == stability
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith(f"| {scenario} | ")]
    assert [row[1] for row in rows] == ["GBC", "LEEP", "N-LEEP", "LogME", "H-score"]
    for name, row in zip(document["metrics"], rows, strict=True):
        less = document["minus_mean_rank"][name]["weighted_kendall"]
        per_target = less["per_target"].values()
        its = document["rankers"][name]
        assert row[2:] == [
            with_interval(its["weighted_kendall"]),
            with_interval(less),
            f"{sum(value > 0 for value in per_target)} of {len(per_target)}",
            with_interval(its["kendall"]),
            f"{with_interval(document['kendall_given_mean_rank'][name])} |",
        ]


def evaluate_audit(folder: Path, *options: str) -> dict[str, Any]:
    evaluate.main(
        ["audit", f"--table={folder / 'table.csv'}", f"--output={folder / 'out'}", "--logger=false", *options]
    )
    document: dict[str, Any] = json.loads((folder / "out" / "audit.json").read_text())
    return document

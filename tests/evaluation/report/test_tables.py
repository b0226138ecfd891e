"""Tables and charts of the page show the numbers of the leaderboard."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.tables import setting_tables
from headstart.tests.material.report_runs import METHODS, show, traces
from headstart.tests.material.runs import write_run, write_runs


def numbers(cell: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", cell)]


def test_tables_of_settings_are_those_of_the_leaderboard(runs: Path) -> None:
    page = show(runs)
    document = json.loads((runs.parent / "leaderboard.json").read_text())
    assert len(document["settings"]) == 2
    for setting in document["settings"]:
        for each in setting_tables(setting):
            shown = [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in page.tables[each.title]]
            assert shown == [[cell or "–" for cell in row] for row in each.rows]


def test_means_over_settings_are_those_of_the_leaderboard(runs: Path) -> None:
    page = show(runs)
    document = json.loads((runs.parent / "leaderboard.json").read_text())
    over = document["over_settings"]
    for row, method in zip(page.tables[f"Over {over['of']}"][1:], over["methods"], strict=True):
        assert row[0] == method["name"]
        assert numbers(row[1]) == pytest.approx(
            [method["interquartile_mean"], *method["interquartile_mean_interval"]], abs=0.0051
        )
    for setting in document["sensitivity"]["settings"]:
        _, *rows = page.tables[f"Sensitivity: {setting['name']}"]
        cells = [cell for row in rows for cell in row[1:]]
        for cell, entry in zip(cells, setting["grid"], strict=True):
            cut = f", cut at {entry['restricted_at']}" if entry["undecided"] else ""
            assert cell == (f"{entry['order'][0]} ({entry['tau']:.2f}{cut})" if entry["order"] else "–")


def test_the_best_is_named_with_methods_not_significantly_different(tmp_path: Path) -> None:
    far, equal, never = traces(0), np.repeat(traces(1)[:1], 4, axis=0), np.zeros((4, 25, 60), dtype=np.int64)
    counts = {"far": far, "two": np.concatenate([equal[:2], far[2:]]), "equal": equal, "never": never}
    named = {name: {"correct": own, "dataset": name} for name, own in counts.items()}
    page = show(write_runs(tmp_path / "runs", named, limit=60, methods=METHODS))
    rows = {row[0].split(" ")[1].rstrip(","): row[1:3] for row in page.tables["Best method of each setting"][1:]}
    assert rows["far"] == ["baseline", "–"]
    assert rows["two"] == ["baseline", "mine"]
    assert rows["equal"] == ["baseline", "3 methods"]
    assert rows["never"] == ["none met the criterion", "3 methods"]


def test_the_measure_and_what_differs_are_reported(tmp_path: Path) -> None:
    sizes = {str(size): {"limit": 60 * size, "step": size} for size in (1, 2)}
    shared: dict[str, Any] = {"correct": traces(0), "methods": METHODS, "measure": "balanced_accuracy"}
    page = show(write_runs(tmp_path / "runs", sizes, **shared))
    assert page.texts.count("Learning curves: validation balanced accuracy") == 2
    assert any("validation balanced accuracy has been 80% or more for 3 " in text for text in page.texts)
    [differing] = [text for text in page.texts if text.startswith("The settings differ in ")]
    assert "batch_size (1, 2)" in differing
    assert "max_samples (60, 120)" in differing


def test_warnings_stand_above_all(runs: Path) -> None:
    pairs = [["a.jpg", "b.jpg"]]
    counts = traces(2)[..., :20]
    write_run(
        runs / "cut", counts, limit=20, max_samples=60, methods=METHODS, dataset="cut", complete=False,
        near_duplicate_photos=pairs,
    )  # fmt: skip
    page = show(runs, incomplete=True)
    above = page.texts[
        : page.texts.index("Who wins, by how much, how sure", page.texts.index("Sensitivity to the criterion"))
    ]
    assert any("is incomplete, cut off at 20 of 60 samples" in text for text in above)
    assert any("a.jpg ~ b.jpg" in text for text in above)
    # The setting itself is shown, with the warnings beside its numbers.
    assert sum("a.jpg ~ b.jpg" in text for text in page.texts) == 2

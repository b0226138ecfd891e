"""Tables and charts of the page show the numbers of the leaderboard."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.tables import setting_tables
from headstart.tests.material.ledgers import store
from headstart.tests.material.report_runs import METHODS, show, traces
from headstart.tests.material.runs import TRACES, write_run


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


def test_label_budgets_have_balanced_accuracies_and_those_of_classes(tmp_path: Path) -> None:
    counts = np.concatenate([np.full((6, 1, 2), 50), np.random.default_rng(0).integers(20, 50, (6, 30, 2))], axis=1)
    of_class = counts.astype(np.uint8)
    store(tmp_path / "stored", {"baseline": counts[:, 1:].sum(-1)}, of_class={"baseline": of_class})
    page = show(tmp_path / "stored", at=[5, 20])
    [setting] = json.loads((tmp_path / "leaderboard.json").read_text())["settings"]
    entries = setting["label_budgets"]["baseline"]
    [header, row] = page.tables[f"Balanced accuracy at label budgets, %: {setting['name']}"]
    assert header == ["method", "5 labels", "20 labels"]
    for cell, each in zip(row[1:], entries, strict=True):
        scores = each["balanced_accuracy"]
        assert numbers(cell) == pytest.approx([100 * x for x in (scores["accuracy"], *scores["ci95"])], abs=0.051)
    [header, row] = page.tables[f"Accuracy of each class at 20 labels, %: {setting['name']}"]
    assert header == ["method", "cats", "dogs"]
    for cell, scores in zip(row[1:], entries[-1]["class_accuracies"].values(), strict=True):
        assert numbers(cell) == pytest.approx([100 * x for x in (scores["accuracy"], *scores["ci95"])], abs=0.051)


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
    (tmp_path / "runs").mkdir()
    far, equal, never = traces(0), np.repeat(traces(1)[:1], 4, axis=0), np.zeros((4, 25, 60), dtype=np.int64)
    for name, counts in {
        "far": far,
        "two": np.concatenate([equal[:2], far[2:]]),
        "equal": equal,
        "never": never,
    }.items():
        write_run(tmp_path / "runs" / name, counts, limit=60, methods=METHODS, dataset=name)
    rows = {
        row[0].split(" ")[1].rstrip(","): row[1:3]
        for row in show(tmp_path / "runs").tables["Best method of each setting"][1:]
    }
    assert rows["far"] == ["baseline", "–"]
    assert rows["two"] == ["baseline", "mine"]
    assert rows["equal"] == ["baseline", "3 methods"]
    assert rows["never"] == ["none met the criterion", "3 methods"]


def test_the_measure_and_what_differs_are_reported(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for size in (1, 2):
        options: dict[str, Any] = {"limit": 60 * size, "step": size, "methods": METHODS, "measure": "balanced_accuracy"}
        write_run(tmp_path / "runs" / str(size), traces(0), **options)
    page = show(tmp_path / "runs")
    assert page.texts.count("Learning curves: validation balanced accuracy") == 2
    assert any("validation balanced accuracy has been 80% or more for 3 " in text for text in page.texts)
    [differing] = [text for text in page.texts if text.startswith("The settings differ in ")]
    assert "batch_size (1, 2)" in differing
    assert "max_samples (60, 120)" in differing


def test_other_weights_and_names_with_commas_are_distinct(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for number, (dataset, weights) in enumerate([("drawn_pets, noise 2", "one.pth"), ("pets", "two.pth")]):
        write_run(
            tmp_path / "runs" / str(number), traces(0), limit=60, methods=METHODS, dataset=dataset, weights=weights
        )
    [differing] = [text for text in show(tmp_path / "runs").texts if text.startswith("The settings differ in ")]
    assert differing == "The settings differ in dataset ('drawn_pets, noise 2', pets); weights (one.pth, two.pth)."
    (tmp_path / "same").mkdir()
    for number in range(2):
        options: dict[str, Any] = {"limit": 60, "methods": METHODS, "weights_sha256": f"{number}" * 64}
        write_run(tmp_path / "same" / str(number), traces(0), **options)
    [differing] = [text for text in show(tmp_path / "same", overwrite=True).texts if "settings differ" in text]
    assert "weights_sha256 (00000000, 11111111)" in differing


def test_learning_curves_are_of_the_orderings_that_all_methods_have(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    counts = traces(0)
    write_run(tmp_path / "runs" / "one", counts[:2, :20], limit=60, methods=METHODS[:2])
    write_run(tmp_path / "runs" / "two", counts[[0, 2], 5:], first=5, limit=60, methods=("baseline", "third"))
    page = show(tmp_path / "runs")
    lines = page.content["figures"]["setting-1-learning_curves"]["data"].splitlines()[1:]
    baseline = page.content["methods"].index("baseline")
    shown = [float(line.split(",")[2]) for line in lines if line.startswith(f"{baseline},")]
    assert shown[0] == pytest.approx(counts[0, 5:20, 0].mean(), abs=0.006)


def test_methods_that_were_tuned_on_a_setting_are_marked_there(runs: Path) -> None:
    page = show(runs, tuned={"mine": "pets"})
    named = "mine (tuned: on these validation photos)"
    marked = [name for name, table in page.tables.items() if named in [row[0] for row in table]]
    assert marked == ["pets, resnet50 (DEFAULT)"]


def test_a_single_run_of_one_ordering_has_a_page(tmp_path: Path) -> None:
    page = show(write_run(tmp_path / "run", TRACES[:, :1], limit=8))
    assert page.tables["Best method of each setting"][1][1] == "mine"


def test_warnings_stand_above_all_and_cut_off_settings_win_nothing(runs: Path) -> None:
    pairs = [["a.jpg", "b.jpg"]]
    counts = traces(2)[..., :20]
    write_run(
        runs / "cut", counts, limit=20, max_samples=60, methods=METHODS, dataset="cut", complete=False,
        near_duplicate_photos=pairs,
    )  # fmt: skip
    page = show(runs)
    above = page.texts[: page.texts.index("Who wins, by how much, how sure", page.texts.index("Replication"))]
    assert any("is incomplete, cut off at 20 of 60 samples" in text for text in above)
    assert any("a.jpg ~ b.jpg" in text for text in above)
    winners = page.tables["Best method of each setting"][1:]
    assert not any("cut" in row[0] for row in winners)
    assert len(winners) == 2
    # The setting itself is shown, with the warnings beside its numbers.
    assert sum("a.jpg ~ b.jpg" in text for text in page.texts) == 2


def test_tied_for_first_is_whom_no_method_is_better_than(runs: Path) -> None:
    alike = np.stack([traces(seed)[0] for seed in range(len(METHODS))])
    write_run(runs / "alike", alike, limit=60, methods=METHODS, dataset="alike")
    page = show(runs)
    document = json.loads((runs.parent / "leaderboard.json").read_text())
    header, *rows = page.tables["Best method of each setting"]
    for row, setting in zip(rows, document["settings"], strict=True):
        first = [each["name"] for each in setting["methods"] if each["rank_interval"][0] == 1]
        assert setting["tied_for_first"] == first
        others = [name for name in first if name != row[1]]
        shown = ", ".join(others) if len(others) < 3 else f"{len(others)} methods"
        assert row[header.index("tied for first")] == (shown or "–")

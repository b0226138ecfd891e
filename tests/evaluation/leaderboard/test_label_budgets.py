"""Accuracy at label budgets is that of a plain loop over the traces, with the tests of all pairs."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.metrics.sample_efficiency.learning_curve_area import learning_curve_area
from headstart.metrics.sample_efficiency.scores import mean_of_means
from headstart.tests.material.leaderboards import rank, refusal
from headstart.tests.material.ledgers import store

Counts = NDArray[np.int64]
CLASSES = ["ants", "bees", "wasps"]
QUALITY = {"baseline": 0.30, "good": 0.45, "twin": 0.451, "best": 0.60}


def draw(seed: int, evaluations: int = 60, orderings: int = 12) -> dict[str, Counts]:
    """Draw traces of 100 validation samples that rise with the logarithm of the samples."""
    generator = np.random.default_rng(seed)
    rise = 0.08 * np.log(np.arange(1, evaluations + 1))
    luck = generator.normal(0, 0.02, (orderings, 1))
    return {
        name: np.round(100 * (quality + rise + luck + generator.normal(0, 0.01, (orderings, evaluations)))).astype(int)
        for name, quality in QUALITY.items()
    }


@pytest.fixture
def balanced(tmp_path: Path) -> Path:
    return store(tmp_path / "stored", draw(0), classes=CLASSES, order="balanced")


def test_budgets_are_those_of_a_plain_loop(balanced: Path) -> None:
    document = rank(balanced, per_class=[1, 2, 4, 8, 16], at=[10, 20])
    [setting] = document["settings"]
    for name, counts in draw(0).items():
        entries = {each["labels"]: each for each in setting["label_budgets"][name]}
        assert list(entries) == [3, 6, 10, 12, 20, 24, 48]
        for labels, each in entries.items():
            shares = [trace[labels - 1] / 100 for trace in counts.tolist()]
            assert each["per_class"] == (labels / 3 if labels % 3 == 0 else None)
            assert each["accuracy"] == pytest.approx(np.mean(shares))
            low, high = stats.t.interval(0.95, 11, np.mean(shares), stats.sem(shares))
            assert each["ci95"] == pytest.approx([low, high])
    assert document["asked"]["per_class"] == [1, 2, 4, 8, 16]


def test_methods_are_compared_in_pairs(balanced: Path) -> None:
    document = rank(balanced, per_class=[8])
    [of] = [setting["label_budgets"] for setting in document["settings"]]
    last = {name: entries[-1] for name, entries in of.items()}
    standings = {name: (each["group"], each["rank_interval"]) for name, each in last.items()}
    close = ("b", [2, 3])
    assert standings == {"best": ("a", [1, 1]), "good": close, "twin": close, "baseline": ("c", [4, 4])}
    counts = draw(0)
    difference = (counts["best"][:, 23] - counts["baseline"][:, 23]) / 100
    assert last["best"]["difference"] == pytest.approx(difference.mean())
    assert last["best"]["difference_ci95"] == pytest.approx(
        stats.t.interval(0.95, 11, difference.mean(), stats.sem(difference))
    )
    # All 2^12 sign patterns: only the observed one and its opposite differ as much.
    assert last["best"]["p_value_adjusted"] == pytest.approx(2 / 2**12)
    assert last["baseline"]["difference"] is None


def test_area_is_that_of_trapezoids_over_logarithms(balanced: Path) -> None:
    [setting] = rank(balanced, at=[5, 40])["settings"]
    for name, counts in draw(0).items():
        areas = []
        for trace in counts.tolist():
            area = 0.0
            for n in range(1, 40):
                area += (trace[n - 1] + trace[n]) / 200 * (np.log(n + 1) - np.log(n))
            areas.append(area / np.log(40))
        scores = setting["learning_curve_area"][name]
        assert (scores["from"], scores["to"]) == (1, 40)
        assert scores["area"] == pytest.approx(np.mean(areas))
        assert scores["ci95"] == pytest.approx(stats.t.interval(0.95, 11, np.mean(areas), stats.sem(areas)))


def test_area_of_a_line_over_logarithms_is_its_middle() -> None:
    seen = np.array([1, 2, 8, 64])
    assert learning_curve_area(0.2 + 0.1 * np.log2(seen), seen) == pytest.approx(0.5)


def test_budgets_behind_the_end_are_missing_with_the_way_to_get_them(tmp_path: Path) -> None:
    counts = draw(0)
    shorter = {**counts, "good": counts["good"][:, :20]}
    ledger = store(tmp_path / "stored", shorter, classes=CLASSES, order="balanced", batch_size=1)
    [setting] = rank(ledger, per_class=[4, 8], at=[50, 500], threshold=0.5, consecutive=3)["settings"]
    labels = {name: [each["labels"] for each in entries] for name, entries in setting["label_budgets"].items()}
    assert labels == {"best": [12, 24, 50], "twin": [12, 24, 50], "baseline": [12, 24, 50], "good": [12]}
    [remark] = [each for each in setting["remarks"] if "No accuracy at" in each]
    assert remark.startswith("No accuracy at 24, 50 (good); 500 labels: ")
    assert "--criterion.until=limit" in remark
    # Comparisons over the whole curve end where all curves do.
    assert {each["to"] for each in setting["learning_curve_area"].values()} == {12}


def test_labels_per_class_need_an_evaluation_there(tmp_path: Path) -> None:
    ledger = store(tmp_path / "stored", draw(0, 20), classes=CLASSES, order="balanced", batch_size=2)
    [setting] = rank(ledger, per_class=[1, 2], at=[7])["settings"]
    # At 7 labels it is the accuracy after 6, as everywhere.
    assert {tuple(each["labels"] for each in own) for own in setting["label_budgets"].values()} == {(6, 7)}
    assert any(each.startswith("No accuracy at 3 labels: ") for each in setting["remarks"])


def test_labels_per_class_of_shuffled_streams_raise_an_error(tmp_path: Path) -> None:
    ledger = store(tmp_path / "stored", draw(0), classes=CLASSES)
    assert refusal(ledger, per_class=[1]).startswith("per_class: no stream is balanced over the classes; ")
    [setting] = rank(ledger, at=[12])["settings"]
    assert [each["per_class"] for own in setting["label_budgets"].values() for each in own] == [None] * 4


def test_leaderboards_without_budgets_have_none(balanced: Path) -> None:
    document = rank(balanced)
    assert document["label_budgets"] is None
    assert document["settings"][0]["label_budgets"] == document["settings"][0]["learning_curve_area"] == {}
    assert "per_class" not in document["asked"]


def two_data_sets(folder: Path) -> Path:
    for seed, (dataset, classes) in enumerate((("insects", CLASSES), ("pets", ["cats", "dogs"]))):
        fed: dict[str, Any] = {"train_photos_sha256": dataset, "classes": classes, "order": "balanced"}
        store(folder / "stored", draw(seed), description={"dataset": dataset}, **fed)
    return folder / "stored"


def test_means_over_settings(tmp_path: Path) -> None:
    over = rank(two_data_sets(tmp_path), per_class=[2, 8], at=[12])["label_budgets"]
    assert over["of"] == "2 settings (2 data sets, 1 network)"
    assert [each["name"] for each in over["methods"]] == ["best", "twin", "good", "baseline"]
    for method in over["methods"]:
        budgets = [(each["per_class"], each["labels"]) for each in method["budgets"]]
        assert budgets == [(2, None), (8, None), (None, 12)]
        groups = [draw(seed)[method["name"]][:, labels - 1] / 100 for seed, labels in ((0, 24), (1, 16))]
        assert method["budgets"][1]["accuracy"] == pytest.approx(np.mean(groups))
        assert method["budgets"][1]["ci95"] == pytest.approx(mean_of_means(groups)[1:])


def test_interval_of_a_mean_of_means_is_that_of_welch() -> None:
    one, other = np.random.default_rng(0).normal([0, 1], [1, 4], (15, 2)).T
    mean, low, high = mean_of_means([one, other[:9]])
    # The interval is that of the difference of two means, with the sign of the second turned.
    welch = stats.ttest_ind(one, -other[:9], equal_var=False).confidence_interval()
    assert (mean, low, high) == pytest.approx(((one.mean() + other[:9].mean()) / 2, welch.low / 2, welch.high / 2))
    assert mean_of_means([one]) == pytest.approx((one.mean(), *stats.t.interval(0.95, 14, one.mean(), stats.sem(one))))
    assert np.isnan(mean_of_means([one, other[:1]])[1:]).all()
    assert mean_of_means([np.ones(3), np.zeros(2)]) == (0.5, 0.5, 0.5)


def test_files_have_the_budgets(tmp_path: Path) -> None:
    leaderboard(str(two_data_sets(tmp_path)), output=str(tmp_path / "out"), per_class=[2, 8], at=[12])
    document: dict[str, Any] = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    with (tmp_path / "out" / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    settings = {setting["name"]: setting for setting in document["settings"]}
    for row in rows:
        entries = {each["per_class"]: each for each in settings[row["setting"]]["label_budgets"][row["method"]]}
        assert float(row["per_class_8"]) == entries[8]["accuracy"]
        assert [float(row["per_class_8_low"]), float(row["per_class_8_high"])] == entries[8]["ci95"]
        assert row["per_class_8_group"] == entries[8]["group"]
        area = settings[row["setting"]]["learning_curve_area"][row["method"]]["area"]
        assert float(row["learning_curve_area"]) == area

    markdown = (tmp_path / "out" / "leaderboard.md").read_text()
    best = document["label_budgets"]["methods"][0]["budgets"][1]["accuracy"]
    assert "## Accuracy at label budgets, %, mean over 2 settings" in markdown
    assert f"| {100 * best:.1f} " in markdown
    latex = (tmp_path / "out" / "leaderboard.tex").read_text()
    table = latex[latex.index("mean over 2 settings") :]
    assert table.startswith("mean over 2 settings (2 data sets, 1 network)}\n\\begin{adjustbox}")
    assert r"\begin{tabular}{lrrrr}" in table
    assert f"best & {100 * document['label_budgets']['methods'][0]['budgets'][0]['accuracy']:.1f} [" in table

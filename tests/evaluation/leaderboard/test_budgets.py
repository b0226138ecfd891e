"""Accuracies at label budgets are those of plain loops, with the tests of all pairs."""

import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import headstart
from headstart.datamodules import ClassFolders
from headstart.datamodules.orderings import balanced_ordering
from headstart.metrics.sample_efficiency.scores import mean_of_means
from headstart.tests.material.leaderboards import rank
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


def t_interval(values: Sequence[float]) -> list[float]:
    return [*stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))]


@pytest.fixture
def balanced(tmp_path: Path) -> Path:
    return store(tmp_path / "stored", draw(0), classes=CLASSES, order="balanced")


def test_budgets_and_areas_are_those_of_a_plain_loop(balanced: Path) -> None:
    document = rank(balanced, per_class=[1, 2, 4, 8, 16], at=[10, 20, 40])
    [setting] = document["settings"]
    for name, counts in draw(0).items():
        entries = {each["labels"]: each for each in setting["label_budgets"][name]}
        assert list(entries) == [3, 6, 10, 12, 20, 24, 40, 48]
        for labels, each in entries.items():
            shares = [trace[labels - 1] / 100 for trace in counts.tolist()]
            assert each["per_class"] == (labels / 3 if labels % 3 == 0 else None)
            assert (each["accuracy"], each["ci95"]) == (
                pytest.approx(np.mean(shares)),
                pytest.approx(t_interval(shares)),
            )

        areas = []
        for trace in counts.tolist():
            steps = [(trace[n - 1] + trace[n]) / 200 * (np.log(n + 1) - np.log(n)) for n in range(1, 48)]
            areas.append(sum(steps) / np.log(48))
        scores = setting["learning_curve_area"][name]
        assert (scores["from"], scores["to"]) == (1, 48)
        assert (scores["area"], scores["ci95"]) == (pytest.approx(np.mean(areas)), pytest.approx(t_interval(areas)))
    assert document["asked"]["per_class"] == [1, 2, 4, 8, 16]

    plain = rank(balanced)
    assert plain["label_budgets"] is None
    assert plain["settings"][0]["label_budgets"] == plain["settings"][0]["learning_curve_area"] == {}


def test_methods_are_compared_in_pairs(balanced: Path) -> None:
    [setting] = rank(balanced, per_class=[8])["settings"]
    last = {name: entries[-1] for name, entries in setting["label_budgets"].items()}
    standings = {name: (each["group"], each["rank_interval"]) for name, each in last.items()}
    close = ("b", [2, 3])
    assert standings == {"best": ("a", [1, 1]), "good": close, "twin": close, "baseline": ("c", [4, 4])}
    counts = draw(0)
    difference = (counts["best"][:, 23] - counts["baseline"][:, 23]) / 100
    assert last["best"]["difference"] == pytest.approx(difference.mean())
    assert last["best"]["difference_ci95"] == pytest.approx(t_interval(difference.tolist()))
    # All 2^12 sign patterns: only the observed one and its opposite differ as much.
    assert last["best"]["p_value_adjusted"] == pytest.approx(2 / 2**12)
    assert last["baseline"]["difference"] is None


def test_budgets_that_are_missing_are_named_with_the_way_to_get_them(tmp_path: Path) -> None:
    counts = draw(0)
    shorter = {**counts, "good": counts["good"][:, :20]}
    ledger = store(tmp_path / "stored", shorter, classes=CLASSES, order="balanced", batch_size=1)
    [setting] = rank(ledger, per_class=[4, 8], at=[50, 500], threshold=0.5, consecutive=3)["settings"]
    labels = {name: [each["labels"] for each in entries] for name, entries in setting["label_budgets"].items()}
    assert labels == {"best": [12, 24, 50], "twin": [12, 24, 50], "baseline": [12, 24, 50], "good": [12]}
    [remark] = [each for each in setting["remarks"] if "No accuracy of" in each]
    assert remark.startswith("No accuracy of all methods at 24, 50, 500 labels: ")
    assert "--criterion.until=limit" in remark
    # Comparisons over the whole curve end where all curves do.
    assert {each["to"] for each in setting["learning_curve_area"].values()} == {12}

    # Labels per class need an evaluation there. At 7 labels it is the accuracy after 6, as everywhere.
    ledger = store(tmp_path / "twos", draw(0, 20), classes=CLASSES, order="balanced", batch_size=2)
    [setting] = rank(ledger, per_class=[1, 2], at=[7])["settings"]
    assert {tuple(each["labels"] for each in own) for own in setting["label_budgets"].values()} == {(6, 7)}
    assert any(each.startswith("No accuracy of all methods at 3 labels: ") for each in setting["remarks"])
    [setting] = rank(store(tmp_path / "shuffled", draw(0), classes=CLASSES), at=[12])["settings"]
    assert [each["per_class"] for own in setting["label_budgets"].values() for each in own] == [None] * 4


def test_means_over_settings_and_files(tmp_path: Path) -> None:
    for seed, (dataset, classes) in enumerate((("insects", CLASSES), ("pets", ["cats", "dogs"]))):
        store(tmp_path / "stored", draw(seed), dataset=dataset, classes=classes, order="balanced")
    document = rank(tmp_path / "stored", per_class=[2, 8], at=[12])
    over = document["label_budgets"]
    assert over["of"] == "2 settings (2 data sets, 1 network)"
    assert [each["name"] for each in over["methods"]] == ["best", "twin", "good", "baseline"]
    for method in over["methods"]:
        assert [(each["per_class"], each["labels"]) for each in method["budgets"]] == [(2, None), (8, None), (None, 12)]
        groups = [draw(seed)[method["name"]][:, labels - 1] / 100 for seed, labels in ((0, 24), (1, 16))]
        assert method["budgets"][1]["accuracy"] == pytest.approx(np.mean(groups))
        assert method["budgets"][1]["ci95"] == pytest.approx(mean_of_means(groups)[1:])

    settings = {setting["name"]: setting for setting in document["settings"]}
    with (tmp_path / "out" / "leaderboard.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            setting, name = settings[row["setting"]], row["method"]
            [entry] = [each for each in setting["label_budgets"][name] if each["per_class"] == 8]
            numbers = [float(row[f"per_class_8{end}"]) for end in ("", "_low", "_high")]
            assert (numbers, row["per_class_8_group"]) == ([entry["accuracy"], *entry["ci95"]], entry["group"])
            assert float(row["learning_curve_area"]) == setting["learning_curve_area"][name]["area"]
    best = over["methods"][0]["budgets"][0]["accuracy"]
    latex = (tmp_path / "out" / "leaderboard.tex").read_text()
    assert f"best & {100 * best:.1f} [" in latex[latex.index("mean over 2 settings (2 data sets, 1 network)}") :]
    assert "## Accuracy at label budgets, %, mean over 2 settings" in (tmp_path / "out" / "leaderboard.md").read_text()


def test_interval_of_a_mean_of_means_is_that_of_welch() -> None:
    one, other = np.random.default_rng(0).normal([0, 1], [1, 4], (15, 2)).T
    mean, low, high = mean_of_means([one, other[:9]])
    # The interval is that of the difference of two means, with the sign of the second turned.
    welch = stats.ttest_ind(one, -other[:9], equal_var=False).confidence_interval()
    assert (mean, low, high) == pytest.approx(((one.mean() + other[:9].mean()) / 2, welch.low / 2, welch.high / 2))
    assert mean_of_means([one]) == pytest.approx((one.mean(), *t_interval(one.tolist())))
    assert np.isnan(mean_of_means([one, other[:1]])[1:]).all()
    assert mean_of_means([np.ones(3), np.zeros(2)]) == (0.5, 0.5, 0.5)


def test_a_run_agrees_with_scikit_learn(fit: Callable[..., Path], photo_folder: Path) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors", reason="the extra sklearn is not installed")
    options = ["--data.order=balanced", "--criterion.until=limit", "--data.orderings=3", "--seed_everything=5"]
    weights = {"name": "mobilenet_v2", "weights": "embedded", "preprocessing": {"resize": 32, "crop": 32}}
    run = fit(*options, "--data.backbone.weights=embedded", "--data.backbone.model_args={}")

    photos = ClassFolders(str(photo_folder))
    train, validation = photos.train(), photos.validation()
    samples, features = headstart.embed(train, weights), headstart.embed(validation, weights)
    orders = [balanced_ordering(train.labels, number, 5) for number in range(3)]
    [setting], [of_ledger] = (
        rank(folder, per_class=[1, 3, 10])["settings"] for folder in (run, Path(os.environ["HEADSTART_LEDGER"]))
    )
    assert of_ledger["label_budgets"] == setting["label_budgets"]
    for entry in setting["label_budgets"]["mean"]:
        shares = []
        for order in orders:
            seen = order[: entry["labels"]]
            predicted = neighbors.NearestCentroid().fit(samples[seen], train.labels[seen]).predict(features)
            shares.append(np.mean(predicted == validation.labels))
        assert entry["accuracy"] == pytest.approx(np.mean(shares))

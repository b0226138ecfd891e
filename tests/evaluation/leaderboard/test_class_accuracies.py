"""Balanced accuracy and accuracy of each class at label budgets are those of a plain loop."""

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import headstart
from headstart.datamodules import ClassFolders
from headstart.datamodules.orderings import balanced_ordering
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.metrics.sample_efficiency.curves import Curves, class_weights
from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import store
from headstart.tests.material.runs import seal, write_run

Counts = NDArray[np.uint8]
CLASSES, SIZES = ["ants", "bees", "wasps"], (50, 30, 20)
QUALITY = {"baseline": 0.4, "good": 0.6}
ORDERINGS = 8


def draw(seed: int = 0, evaluations: int = 30, sizes: tuple[int, ...] = SIZES) -> dict[str, Counts]:
    """Draw the sizes of the classes and the correct predictions of each, `[orderings, 1 + evaluations, classes]`."""
    generator, whole = np.random.default_rng(seed), np.array(sizes, dtype=np.uint8)
    drawn = {}
    for name, quality in QUALITY.items():
        counts = generator.binomial(whole, quality, (ORDERINGS, evaluations, len(sizes))).astype(np.uint8)
        drawn[name] = np.concatenate([np.broadcast_to(whole, (ORDERINGS, 1, len(sizes))), counts], axis=1)
    return drawn


def totals(of_class: Counts) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = of_class[:, 1:].sum(-1, dtype=np.int64)
    return counts


def fill(folder: Path, drawn: dict[str, Counts], counted: tuple[str, ...] = tuple(QUALITY), **fed: Any) -> Path:
    names = [f"class {number}" for number in range(drawn["good"].shape[-1])]
    fed = {"classes": CLASSES if len(names) == 3 else names, "order": "balanced", **fed}
    traces = {name: totals(each) for name, each in drawn.items()}
    return store(folder, traces, of_class={name: drawn[name] for name in counted}, **fed)


def require_plain(entry: dict[str, Any], shares: list[list[float]]) -> None:
    """Check a label budget against the accuracies of the classes in each ordering."""
    for values, scores in [
        ([sum(own) / len(own) for own in shares], entry["balanced_accuracy"]),
        *zip(map(list, zip(*shares, strict=True)), entry["class_accuracies"].values(), strict=True),
    ]:
        assert scores["accuracy"] == pytest.approx(np.mean(values))
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert scores["ci95"] == pytest.approx([max(low, 0), min(high, 1)])


def test_they_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    drawn = draw()
    [setting] = rank(fill(tmp_path / "stored", drawn), per_class=[1, 4], at=[20])["settings"]
    for name, of_class in drawn.items():
        entries = setting["label_budgets"][name]
        assert [each["labels"] for each in entries] == [3, 12, 20]
        for each in entries:
            shares = [
                [count / size for count, size in zip(own[each["labels"]], SIZES, strict=True)]
                for own in of_class.tolist()
            ]
            require_plain(each, shares)
            assert list(each["class_accuracies"]) == CLASSES


def test_files_have_them(tmp_path: Path) -> None:
    fill(tmp_path / "stored", draw())
    document = leaderboard(str(tmp_path / "stored"), output=str(tmp_path / "out"), per_class=[4])
    budgets = document["settings"][0]["label_budgets"]
    with (tmp_path / "out" / "leaderboard.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            scores = budgets[row["method"]][0]["balanced_accuracy"]
            ends = [float(row[f"per_class_4_balanced{end}"]) for end in ("", "_low", "_high")]
            assert ends == [scores["accuracy"], *scores["ci95"]]

    markdown = (tmp_path / "out" / "leaderboard.md").read_text()
    good = budgets["good"][0]
    assert "## Balanced accuracy at label budgets, %: pets, resnet18 (DEFAULT)" in markdown
    assert f"| good | {100 * good['balanced_accuracy']['accuracy']:.1f} \\[" in markdown
    assert (
        "Accuracy of each class at 12 labels, %: pets, resnet18 (DEFAULT)\n\n| method | ants | bees | wasps |"
        in markdown
    )
    cells = [f"{100 * each['accuracy']:.1f} \\[" for each in good["class_accuracies"].values()]
    assert any(all(cell in line for cell in cells) for line in markdown.splitlines() if line.startswith("| good"))


def test_many_classes_have_no_table(tmp_path: Path) -> None:
    fill(tmp_path / "stored", draw(sizes=(9,) * 11))
    document = leaderboard(str(tmp_path / "stored"), output=str(tmp_path / "out"), at=[10])
    [entry] = document["settings"][0]["label_budgets"]["good"]
    assert len(entry["class_accuracies"]) == 11
    markdown = (tmp_path / "out" / "leaderboard.md").read_text()
    assert "Balanced accuracy at label budgets" in markdown
    assert "Accuracy of each class" not in markdown


def test_where_the_measure_is_balanced_accuracy_both_agree(tmp_path: Path) -> None:
    drawn, weights = draw(), class_weights(np.array(SIZES), "balanced_accuracy")
    traces = {name: each[:, 1:].astype(np.int64) @ weights for name, each in drawn.items()}
    fed: dict[str, Any] = {"measure": "balanced_accuracy", "all_correct": int(weights @ SIZES), "classes": CLASSES}
    store(tmp_path / "stored", traces, of_class=drawn, **fed)
    document = leaderboard(str(tmp_path / "stored"), output=str(tmp_path / "out"), at=[5, 25])
    for entries in document["settings"][0]["label_budgets"].values():
        for each in entries:
            assert each["balanced_accuracy"]["accuracy"] == pytest.approx(each["accuracy"])
            assert each["balanced_accuracy"]["ci95"] == pytest.approx(each["ci95"])
    markdown = (tmp_path / "out" / "leaderboard.md").read_text()
    assert "Balanced accuracy at label budgets" not in markdown
    assert "Accuracy of each class at 25 labels" in markdown


def test_where_classes_were_not_counted_a_remark_says_how_to(tmp_path: Path) -> None:
    [setting] = rank(fill(tmp_path / "stored", draw(), ("good",)), at=[10])["settings"]
    assert "balanced_accuracy" in setting["label_budgets"]["good"][0]
    assert "balanced_accuracy" not in setting["label_budgets"]["baseline"][0]
    [remark] = [each for each in setting["remarks"] if "No balanced accuracy" in each]
    assert "of baseline: " in remark
    assert remark.endswith("headstart train with --results.per_class=true.")
    [setting] = rank(fill(tmp_path / "plain", draw(), ()), at=[10])["settings"]
    assert not any("balanced" in each for each in setting["remarks"])
    assert "balanced_accuracy" not in setting["label_budgets"]["good"][0]


def write(folder: Path, drawn: dict[str, Counts], orderings: slice, **options: Any) -> None:
    """Write a run with counts of classes."""
    of_class = np.stack([each[orderings, 1:] for each in drawn.values()])
    correct = of_class.sum(-1, dtype=np.int64)
    run = write_run(folder, correct, limit=30, methods=list(drawn), classes=CLASSES, **options)
    counts = {"class_correct": of_class, "class_sizes": np.array(SIZES)}
    (run / "curves.npz").write_bytes(Curves.load(run / "curves.npz").content(counts))
    seal(run)


def test_runs_are_joined_and_seeds_pooled(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    expected: dict[str, list[list[float]]] = {name: [] for name in QUALITY}
    for seed in (0, 1):
        drawn = draw(seed)
        options = {"seed": seed, "stream_sha256": f"seed {seed}", "train_photos_sha256": "insects"}
        for first, last in ((3, ORDERINGS), (0, 3)):
            write(tmp_path / "runs" / f"{seed} {first}", drawn, slice(first, last), first=first, **options)
        for name, of_class in drawn.items():
            expected[name] += (of_class[:, 10] / np.array(SIZES)).tolist()
    [setting] = rank(tmp_path / "runs", at=[10])["settings"]
    assert setting["orderings"] == [*range(ORDERINGS)] * 2
    for name, shares in expected.items():
        require_plain(setting["label_budgets"][name][0], shares)


@pytest.fixture
def uneven(photo_folder: Path) -> Path:
    """Take two thirds of the validation photos of one class away."""
    for number in range(4):
        (photo_folder / "validation" / "dark" / f"{number}.jpg").unlink()
    return photo_folder


def test_a_run_agrees_with_scikit_learn(fit: Callable[..., Path], uneven: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the extra sklearn is not installed")
    neighbors = pytest.importorskip("sklearn.neighbors")
    options = ["--data.order=balanced", "--criterion.until=limit", "--data.orderings=3", "--seed_everything=5"]
    weights = {"name": "mobilenet_v2", "weights": "embedded", "preprocessing": {"resize": 32, "crop": 32}}
    backbone = ["--data.backbone.weights=embedded", "--data.backbone.model_args={}"]
    run = fit(*options, *backbone, "--results.per_class=true")

    photos = ClassFolders(str(uneven))
    train, validation = photos.train(), photos.validation()
    fed, held = headstart.embed(train, weights), headstart.embed(validation, weights)
    orders = [balanced_ordering(train.labels, number, 5) for number in range(3)]
    [setting], [of_ledger] = (
        rank(folder, per_class=[1, 3, 10])["settings"] for folder in (run, Path(os.environ["HEADSTART_LEDGER"]))
    )
    assert of_ledger["label_budgets"] == setting["label_budgets"]
    entries = setting["label_budgets"]["mean"]
    assert all(abs(each["balanced_accuracy"]["accuracy"] - each["accuracy"]) > 0.01 for each in entries)
    for entry in entries:
        balanced, recalls = [], []
        for order in orders:
            seen = order[: entry["labels"]]
            predicted = neighbors.NearestCentroid().fit(fed[seen], train.labels[seen]).predict(held)
            balanced.append(metrics.balanced_accuracy_score(validation.labels, predicted))
            recalls.append(metrics.recall_score(validation.labels, predicted, average=None))
        assert entry["balanced_accuracy"]["accuracy"] == pytest.approx(np.mean(balanced))
        means = [each["accuracy"] for each in entry["class_accuracies"].values()]
        assert means == pytest.approx(np.mean(recalls, axis=0))
        assert list(entry["class_accuracies"]) == ["dark", "light"]

"""Aggregates over settings against independent computations, and which settings and methods they are of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import reach, store
from headstart.tests.material.runs import write_runs

METHODS = ("baseline", "one", "two", "three")
LIMIT = 120
DATA_SETS, BACKBONES = ("pets", "ants", "flowers"), ("0" * 64, "1" * 64)
Values = np.ndarray[Any, np.dtype[np.float64]]


def draw(seed: int) -> Values:
    """Draw samples to criterion, some equal, `[methods, orderings]`."""
    generator = np.random.default_rng(seed)
    means = 15 * generator.uniform(0.8, 4, 1) * np.sort(generator.uniform(0.8, 1.6, 4))[generator.permutation(4), None]
    return np.clip(np.round(means * generator.lognormal(0, 0.3, (4, 15))), 10, LIMIT)


@pytest.fixture
def samples(tmp_path: Path) -> dict[tuple[str, str], Values]:
    samples = {}
    for seed, (dataset, weights) in enumerate([(d, w) for d in DATA_SETS for w in BACKBONES]):
        samples[dataset, weights] = draw(seed)
        fill(tmp_path / "stored", seed, dataset, weights)
    return samples


def fill(folder: Path, seed: int, dataset: str, weights: str = BACKBONES[0], kinds: Any = None, **stream: Any) -> Path:
    """Store the traces of a seed as those of a data set and a network."""
    traces = {name: reach(each, LIMIT) for name, each in zip(METHODS, draw(seed), strict=True)}
    stream = {"dataset": dataset, "weights_sha256": weights, "description": {"weights": weights[:3]}, **stream}
    return store(folder, traces, kinds=kinds, **stream)


def test_interquartile_mean_ranks_and_improvement(samples: dict[tuple[str, str], Values], tmp_path: Path) -> None:
    over = rank(tmp_path / "stored")["over_settings"]
    relative = [each / stats.gmean(each, axis=0) for each in samples.values()]
    for row in over["methods"]:
        index = METHODS.index(row["name"])
        logarithms = np.log(np.concatenate([each[index] for each in relative]))
        # A quarter of twice as many is a whole number of runs.
        middle = np.exp(stats.trim_mean(np.repeat(logarithms, 2), 0.25))
        assert row["interquartile_mean"] == pytest.approx(middle, rel=1e-6)
        low, high = row["interquartile_mean_interval"]
        assert low < row["interquartile_mean"] < high
        ranks = np.array([stats.rankdata(each.mean(1))[index] for each in samples.values()])
        assert row["ranks"] == ranks.tolist()
        assert row["mean_rank"] == pytest.approx(ranks.mean())
        by_data_set = ranks.reshape(3, 2).mean(1)
        interval = stats.ttest_1samp(by_data_set, 0).confidence_interval()
        assert row["mean_rank_interval"] == pytest.approx([max(interval.low, 1), min(interval.high, 4)])
    means = [row["interquartile_mean"] for row in over["methods"]]
    assert means == sorted(means)
    assert len(over["probability_of_improvement"]) == 6
    for pair in over["probability_of_improvement"]:
        one, other = METHODS.index(pair["better"]), METHODS.index(pair["worse"])
        signs = [np.sign(each[other] - each[one]) for each in samples.values()]
        shares = [(1 + sign.mean()) / 2 for sign in signs]
        assert pair["probability"] == pytest.approx(np.mean(shares))
        assert pair["interval"][0] <= pair["probability"] <= pair["interval"][1]


def test_methods_that_are_not_the_same_in_all_settings_are_left_out(
    samples: dict[tuple[str, str], Values], tmp_path: Path
) -> None:
    extra = {"extra": reach(samples["pets", BACKBONES[0]][0], LIMIT)}
    store(tmp_path / "stored", extra, description={"weights": BACKBONES[0][:3]}, weights_sha256=BACKBONES[0])
    kinds = {"two": {"class": "headstart.modules.Two", "hyperparameters": {"rate": 2}}}
    fill(tmp_path / "stored", 9, "birds", kinds=kinds)
    over = rank(tmp_path / "stored")["over_settings"]
    assert {row["name"] for row in over["methods"]} == {*METHODS} - {"two"}
    assert "Not in all settings, and left out: extra." in over["remarks"]
    assert "Not the same method in all settings, and left out: two." in over["remarks"]
    assert len(over["settings"]) == 7


def test_batch_sizes_of_one_data_set_and_backbone_are_not_pooled(
    samples: dict[tuple[str, str], Values], tmp_path: Path
) -> None:
    fill(tmp_path / "stored", 9, "pets", batch_size=8)
    # A data set of its own counts with any batch size.
    fill(tmp_path / "stored", 9, "birds", "1" * 64, batch_size=4)
    over = rank(tmp_path / "stored")["over_settings"]
    assert len(over["settings"]) == 7
    assert "The settings differ also in batch_size (1, 4)." in over["remarks"]
    assert not any("batch size 8" in name for name in over["settings"])
    assert any("batch size 8" in remark and "--where" in remark for remark in over["remarks"])
    assert rank(tmp_path / "stored", where={"batch_size": 8})["over_settings"] is None


def add(folder: Path, seed: int, thresholds: tuple[float, ...], dataset: str, **stream: Any) -> None:
    """Write runs of one stream, read by some thresholds, whose methods have a sample limit in their key."""
    counts = np.stack([reach(each, LIMIT) for each in draw(seed)])
    keys = {name: {"class": name, "hyperparameters": {}, "max_samples": seed} for name in METHODS}
    shared: dict[str, Any] = {"correct": counts, "limit": LIMIT, "methods": METHODS, "keys": keys, "dataset": dataset}
    shared |= {"weights_sha256": "0" * 64, "train_photos_sha256": dataset, **stream}
    write_runs(folder, {f"{dataset} {seed} {each}": {"threshold": each} for each in thresholds}, **shared)


def test_a_further_threshold_of_one_data_set_takes_none_away(tmp_path: Path) -> None:
    for seed, (dataset, thresholds) in enumerate(
        [("pets", (0.8,)), ("ants", (0.85, 0.7)), ("flowers", (0.7, 0.75)), ("birds", (0.75,)), ("cars", (0.6, 0.65))]
    ):
        add(tmp_path / "runs", seed, thresholds, dataset)
    over = rank(tmp_path / "runs")["over_settings"]
    # The most frequent threshold of several data sets is 70 %; the cars have no such threshold.
    assert [name.replace("resnet50 (DEFAULT), ", "") for name in over["settings"]] == [
        *("ants, threshold 0.7", "birds, resnet50 (DEFAULT)", "cars, threshold 0.6", "flowers, threshold 0.7"),
        "pets, resnet50 (DEFAULT)",
    ]
    [remark] = [remark for remark in over["remarks"] if remark.startswith("Over settings of threshold 0.7 ")]
    assert "(where there is none such, of cars, resnet50 (DEFAULT), threshold 0.6)" in remark


def test_data_sets_are_told_apart_by_photos_and_methods_not_by_sample_limits(tmp_path: Path) -> None:
    for seed in range(3):
        add(tmp_path / "runs", seed, (0.8,), "photos", train_photos_sha256=f"{seed}")
    over = rank(tmp_path / "runs")["over_settings"]
    assert len(over["settings"]) == 3
    # Their keys differ in the limits alone.
    assert {row["name"] for row in over["methods"]} == set(METHODS)

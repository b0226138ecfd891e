"""Seeds of a stream are orderings of one setting; batch sizes, and random weights of other seeds, are settings."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import reach
from headstart.tests.material.runs import write_run, write_runs

METHODS = ("baseline", "one", "two")
LIMIT = 120
Values = np.ndarray[Any, np.dtype[np.float64]]


def draw(*seed: int) -> Values:
    """Draw samples to criterion, `[methods, orderings]`."""
    generator = np.random.default_rng(seed)
    return np.clip(np.round(generator.lognormal(3.4, 0.4, (3, 12)) * [[1.6], [1.0], [1.2]]), 10, LIMIT)


def traces(values: Values) -> np.ndarray[Any, Any]:
    return np.stack([reach(each, LIMIT) for each in values])


def sweep(folder: Path) -> dict[tuple[Any, ...], Values]:
    """Write runs of three seeds, random and pre-trained weights, and two batch sizes; return their samples."""
    folder.mkdir()
    samples = {}
    for seed, weights, size in product(range(3), ("random", "DEFAULT"), (1, 2)):
        values = draw(seed, len(weights), size)
        write_run(
            folder / f"{seed} {weights} {size}",
            traces(values),
            limit=LIMIT,
            methods=METHODS,
            weights=weights,
            weights_sha256=str(seed if weights == "random" else 9) * 64,
            random_weights=weights == "random",
            train_photos_sha256="pets",
            batch_size=size,
            seed=seed,
            stream_sha256=f"{seed} {weights} {size}",
        )
        # Runs of this helper meet the criterion at three evaluations in a row, instead of ten.
        samples[seed, weights, size] = values - 7
    return samples


def test_seeds_are_pooled_and_random_weights_are_several_networks(tmp_path: Path) -> None:
    samples = sweep(tmp_path / "runs")
    document = rank(tmp_path / "runs", where={"batch_size": 1})
    random = [f"pets, resnet50 (random), seed {seed}" for seed in range(3)]
    pretrained = "pets, resnet50 (DEFAULT)"
    settings = {setting["name"]: setting for setting in document["settings"]}
    assert sorted(settings) == sorted([pretrained, *random])
    assert settings[pretrained]["orderings"] == [*range(12)] * 3
    assert "The orderings of the seeds 0, 1, 2 are pooled." in settings[pretrained]["remarks"]

    pooled = [np.concatenate([samples[seed, "DEFAULT", 1] for seed in range(3)], axis=1)]
    for row in settings[pretrained]["methods"]:
        own = pooled[0][METHODS.index(row["name"])]
        assert row["restricted_mean"] == pytest.approx(own.mean())
        assert row["restricted_mean_interval"] == pytest.approx(stats.t.interval(0.95, 35, own.mean(), stats.sem(own)))

    over = document["over_settings"]
    assert over["of"] == "4 settings (1 data set, 4 networks)"
    pooled += [samples[seed, "random", 1] for seed in range(3)]
    relative = [np.log(each / stats.gmean(each, axis=0)) for each in pooled]
    weights = np.repeat([1 / 36, 1 / 12, 1 / 12, 1 / 12], [36, 12, 12, 12])
    for row in over["methods"]:
        index = METHODS.index(row["name"])
        middle = trimmed_mean(np.concatenate([each[index] for each in relative]), weights)
        assert row["interquartile_mean"] == pytest.approx(np.exp(middle), rel=1e-6)
        assert sorted(row["ranks"]) == sorted(float(stats.rankdata(each.mean(1))[index]) for each in pooled)
    for pair in over["probability_of_improvement"]:
        one, other = METHODS.index(pair["better"]), METHODS.index(pair["worse"])
        shares = [(1 + np.sign(each[other] - each[one]).mean()) / 2 for each in pooled]
        assert pair["probability"] == pytest.approx(np.mean(shares))


def trimmed_mean(values: Values, weights: Values) -> float:
    """Return the mean of the middle half by weight, summed in small steps of weight."""
    order = np.argsort(values)
    ends = np.cumsum(weights[order]) / weights.sum()
    middle = (np.arange(36_000) + 0.5) / 72_000 + 0.25
    return float(values[order][np.searchsorted(ends, middle)].mean())


def test_methods_that_seldom_differ_have_no_table_over_settings(tmp_path: Path) -> None:
    for slowest in (10, 30):
        values = np.full((3, 12), 10.0)
        values[0, 0] = slowest
        named = {name: {"dataset": name, "train_photos_sha256": name} for name in ("ants", "bees")}
        folder, shared = tmp_path / str(slowest) / "runs", {"limit": LIMIT, "methods": METHODS}
        document = rank(write_runs(folder, named, correct=traces(values), **shared))
        assert document["over_settings"] is None
        assert "Nothing is compared over settings: all methods are equal in most orderings." in document["remarks"]
        assert any("at the criterion's floor or censored" in remark for remark in document["remarks"])

"""Ranks of sources against scipy's, and who leads."""

import numpy as np
import pytest
from scipy.stats import rankdata

from headstart.evaluation.sources.results import rank


def make(columns: dict[str, list[float | None]]) -> dict[str, dict[str, float | None]]:
    count = len(next(iter(columns.values())))
    return {f"source {index}": {metric: values[index] for metric, values in columns.items()} for index in range(count)}


def test_ranks_are_those_of_scipy() -> None:
    generator = np.random.default_rng(0)
    columns: dict[str, list[float | None]] = {
        "leep": generator.normal(size=9).tolist(),
        "gbc": generator.integers(0, 4, 9).astype(float).tolist(),
    }
    ranking = rank(make(columns))
    expected = [rankdata(-np.array(values, dtype=float)) for values in columns.values()]
    for metric, ranks in zip(columns, expected, strict=True):
        assert list(ranking.ranks[metric].values()) == ranks.tolist()
    means = np.mean(expected, axis=0)
    assert list(ranking.mean_ranks.values()) == pytest.approx(means)
    assert ranking.names == [f"source {index}" for index in np.argsort(means, kind="stable")]


def test_metric_without_a_score_or_a_difference_ranks_nothing() -> None:
    ranking = rank(make({"leep": [1.0, None], "num_classes": [7.0, 7.0], "gbc": [-2.0, -1.0]}))
    assert list(ranking.ranks) == ["gbc"]
    assert ranking.names == ["source 1", "source 0"]
    nothing = rank(make({"num_classes": [7.0, 7.0]}))
    assert nothing.ranks == {}
    assert nothing.mean_ranks == {"source 0": None, "source 1": None}
    assert nothing.names == ["source 0", "source 1"]


def test_scores_that_differ_by_rounding_are_equal() -> None:
    ranking = rank(make({"h_score": [1 - 1e-15, 1.0], "gbc": [-3.0, -3 + 1e-14], "leep": [-1.0, -2.0]}))
    assert list(ranking.ranks) == ["leep"]
    ranking = rank(make({"h_score": [1.0, 0.5, 1 - 1e-15]}))
    assert list(ranking.ranks["h_score"].values()) == [1.5, 3, 1.5]


def test_a_baseline_is_ranked_and_has_no_part_in_the_mean() -> None:
    scores = make({"baseline": [1.0, 3.0, 2.0], "gbc": [-1.0, -2.0, -3.0]})
    ranking = rank(scores, ["baseline"])
    assert list(ranking.ranks["baseline"].values()) == [3, 1, 2]
    assert list(ranking.mean_ranks.values()) == [1, 2, 3]
    assert list(rank(scores).mean_ranks.values()) == [2, 1.5, 2.5]
    assert rank(make({"baseline": [1.0, 3.0]}), ["baseline"]).mean_ranks == {"source 0": None, "source 1": None}

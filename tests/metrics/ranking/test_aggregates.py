"""Aggregates over settings against SciPy, resample by resample."""

import math

import numpy as np
import pytest
from scipy import stats

from headstart.metrics.ranking import aggregates
from headstart.metrics.ranking.aggregates import (
    bootstrap_counts,
    interquartile_means,
    jackknife_values,
    percentile_interval,
    probabilities_of_improvement,
)

SIZES = (20, 33, 17)
VALUES = [np.random.default_rng(size).integers(10, 60, (5, size)).astype(np.float64) for size in SIZES]


@pytest.mark.parametrize("sizes", [SIZES, (20,), (17, 17, 17)])
def test_interquartile_means_are_means_trimmed_by_a_quarter_of_settings_that_count_the_same(
    sizes: tuple[int, ...],
) -> None:
    values = [np.random.default_rng(size).integers(10, 60, (5, size)).astype(np.float64) for size in sizes]
    counts = [*bootstrap_counts(sizes, 4)]
    result, often = interquartile_means(values, counts), 4 * math.lcm(*sizes)
    of_each = np.split(np.concatenate(counts), np.cumsum(sizes)[:-1], axis=1)
    assert result.shape == (4, 5)
    for resample in range(4):
        for method in range(5):
            # Runs are repeated until all settings have equally many, which a quarter of is a whole number.
            runs = [
                np.repeat(its[method], its_counts[resample].astype(int) * (often // its.shape[1]))
                for its, its_counts in zip(values, of_each, strict=True)
            ]
            assert result[resample, method] == pytest.approx(stats.trim_mean(np.concatenate(runs), 0.25), rel=1e-6)


def test_probability_of_improvement_is_that_of_the_same_orderings() -> None:
    result, low, high = probabilities_of_improvement(VALUES)
    for one in range(5):
        for other in range(5):
            shares = []
            for values in VALUES:
                pairs = zip(values[one], values[other], strict=True)
                shares.append(np.mean([1 if a < b else 0.5 if a == b else 0 for a, b in pairs]))
            assert result[one, other] == pytest.approx(np.mean(shares))
    assert ((low <= result) & (result <= high)).all()
    assert low + high.T == pytest.approx(1)


@pytest.mark.parametrize(("won", "count"), [(10, 10), (7, 10), (0, 25), (20, 25)])
def test_interval_of_one_setting_is_that_of_agresti_and_coull(won: int, count: int) -> None:
    values = np.stack([np.zeros(count), np.where(np.arange(count) < won, 1.0, -1.0)])
    _, low, high = probabilities_of_improvement([values])[:, 0, 1]
    centre = (won + 2) / (count + 4)
    half = stats.norm.ppf(0.975) * (centre * (1 - centre) / (count + 4)) ** 0.5
    assert (low, high) == (pytest.approx(max(centre - half, 0)), pytest.approx(min(centre + half, 1)))


def test_resamples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    [together] = bootstrap_counts(SIZES, 100)
    means = interquartile_means(VALUES, [together])
    monkeypatch.setattr(aggregates, "AT_ONCE", 2 * sum(SIZES))
    parts = [*bootstrap_counts(SIZES, 100)]
    assert [len(part) for part in parts] == [32, 32, 32, 4]
    assert (np.concatenate(parts) == together).all()
    assert interquartile_means(VALUES, parts) == pytest.approx(means, rel=1e-12)


def test_percentile_intervals_leave_out_as_many_on_either_side() -> None:
    assert percentile_interval(np.arange(1, 1001.0)[:, None] * [1, -1]).tolist() == [[25, -976], [975, -26]]


def test_jackknife_values_of_a_mean_are_the_values_themselves() -> None:
    values = np.random.default_rng(3).normal(size=9)
    without = (values.sum() - values) / 8
    np.testing.assert_allclose(jackknife_values(float(values.mean()), without), values)

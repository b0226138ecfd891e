"""The statistics against SciPy's other routines, full enumeration and worked examples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from metrics.sample_efficiency.paired_comparison import compare, holm, restricted, sign_flip_p_value, t_interval


def enumerate_sign_flips(differences: NDArray[np.float64]) -> float:
    """Give the share of all sign patterns whose mean is at least as far from 0."""
    patterns = np.array(list(product((-1, 1), repeat=len(differences))))
    return float(np.mean(np.abs(patterns @ differences) >= abs(differences.sum())))


@pytest.mark.parametrize("seed", range(10))
def test_restricted_mean_is_the_area_under_the_survival_curve(seed: int) -> None:
    generator = np.random.default_rng(seed)
    samples = generator.integers(1, 300, 50).astype(np.float64)
    samples[generator.random(50) < 0.3] = np.inf
    for limit in (1, 100, 250, 500):
        survival = [np.mean(samples > count) for count in range(limit)]
        assert restricted(samples, limit).mean() == pytest.approx(sum(survival))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("count", [2, 3, 20, 200])
def test_t_interval_as_in_scipy(count: int, level: float) -> None:
    differences = np.random.default_rng(count).normal(30, 50, count)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(level)
    assert t_interval(differences, level) == pytest.approx((expected.low, expected.high))


def test_t_interval_of_equal_values_is_their_mean() -> None:
    assert t_interval(np.full(5, 12.0)) == (12, 12)


def test_t_interval_of_one_value_is_undefined() -> None:
    assert np.isnan(t_interval(np.array([3.0]))).all()


@pytest.mark.parametrize("count", range(1, 13))
def test_sign_flips_as_enumerated(count: int) -> None:
    generator = np.random.default_rng(count)
    for shift in (-20, 0, 1, 20):
        # Whole numbers as samples are: ties between patterns are exact. Zeros are among them.
        differences = (generator.integers(-15, 16, count) + shift).astype(np.float64)
        differences[generator.random(count) < 0.2] = 0
        assert sign_flip_p_value(differences) == pytest.approx(enumerate_sign_flips(differences))


def test_no_difference_at_all() -> None:
    assert sign_flip_p_value(np.zeros(7)) == 1


def test_drawn_sign_flips_are_seeded_and_near_the_enumeration() -> None:
    differences = np.random.default_rng(3).integers(-10, 15, 17).astype(np.float64)
    p_value = sign_flip_p_value(differences)
    assert p_value == sign_flip_p_value(differences)
    assert p_value == pytest.approx(enumerate_sign_flips(differences), rel=0.05)


def test_drawn_p_value_is_never_zero() -> None:
    assert sign_flip_p_value(np.full(40, 3.0)) == pytest.approx(2 / 100_000)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        # Sorted: 4 * 0.005, 3 * 0.01, 2 * 0.03, and 1 * 0.04 raised to the 0.06 before it.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.9], [1, 1]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.3], [0.3]),
        ([], []),
    ],
)
def test_holm(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


def test_comparison_is_of_restricted_means() -> None:
    baseline, custom = np.array([100, np.inf, 60, 40]), np.array([50, 80, np.inf, 40])
    comparison = compare(baseline, custom, limit=200)
    differences = np.array([50, 120, -140, 0])
    assert comparison.mean_difference == pytest.approx(7.5)
    assert comparison.relative_improvement == pytest.approx(7.5)  # the baseline's restricted mean is 100
    interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert comparison.interval == pytest.approx((interval.low, interval.high))
    assert comparison.relative_interval == pytest.approx((interval.low, interval.high))
    assert comparison.p_value == pytest.approx(enumerate_sign_flips(differences))


def test_relative_improvement_is_in_per_cent_of_the_baseline() -> None:
    comparison = compare(np.array([30.0, 50.0]), np.array([10.0, 40.0]), limit=500)
    assert comparison.mean_difference == pytest.approx(15)
    assert comparison.relative_improvement == pytest.approx(37.5)
    assert comparison.relative_interval == pytest.approx([end / 40 * 100 for end in comparison.interval])

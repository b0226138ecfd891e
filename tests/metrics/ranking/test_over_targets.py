"""Tests and intervals over few targets, and the best metrics, against SciPy's, by definition and by simulation."""

import numpy as np
import pytest
from scipy import stats

from headstart.metrics.ranking.over_targets import LEVEL, find_best, mean_interval, p_value, respread


@pytest.mark.parametrize("count", range(2, 8))
def test_fewer_than_eight_differences_have_their_signs_flipped(count: int) -> None:
    generator = np.random.default_rng(count)
    for _ in range(5):
        # SciPy compares sums exactly, of whole numbers without rounding errors.
        whole = generator.integers(-3, 6, count).astype(np.float64)
        expected = stats.permutation_test((whole,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue
        assert p_value(whole / 3) == pytest.approx(expected)


def test_eight_differences_have_a_t_test() -> None:
    values = np.random.default_rng(0).normal(0.5, size=8)
    assert p_value(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert mean_interval(values, -9, 9) == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval())


@pytest.mark.parametrize("count", [1, 3, 6, 8, 12])
def test_equal_differences_have_the_p_value_of_sign_flips_and_no_interval(count: int) -> None:
    assert p_value(np.full(count, 1 / 3)) == min(2 * 0.5**count, 1)
    assert p_value(np.zeros(count)) == 1
    assert np.isnan(mean_interval(np.full(count, 1 / 3), -1, 1)).all()


@pytest.mark.parametrize("count", [6, 7, 8, 20])
def test_an_interval_holds_the_means_that_the_test_does_not_reject(count: int) -> None:
    generator = np.random.default_rng(count)
    for values in generator.normal(size=(10, count)):
        for end, inside in zip(mean_interval(values, -9, 9), (1e-9, -1e-9), strict=True):
            assert p_value(values - (end + inside)) > LEVEL >= p_value(values - (end - inside))


def test_intervals_are_cut_at_the_bounds_and_need_six_values() -> None:
    values = np.array([0.1, 0.99, 1, 0.9, 1, 1, 0.95, 1])
    low, high = mean_interval(values, 0, 1)
    assert low == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval().low)
    assert high == 1
    assert np.isnan(mean_interval(np.arange(5.0), -9, 9)).all()
    assert p_value(np.arange(1.0, 6.0)) > LEVEL


def test_a_bootstrap_of_plain_values_spreads_them_as_they_are() -> None:
    generator = np.random.default_rng(0)
    values = np.append(generator.normal(size=12), np.nan)
    counts = generator.multinomial(13, np.full(13, 1 / 13), size=20_000).astype(np.float64)
    spread = respread(values, np.tile(values, (len(counts), 1)), counts)
    np.testing.assert_allclose(spread[:12] - values[:12].mean(), values[:12] - values[:12].mean(), rtol=0.06)
    assert np.isnan(spread[12])


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_by_adjusted_paired_tests_of_all_pairs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(5, 8)) + np.array([0, 0.4, 0.8, 1.2, 3])[:, None]
    best = find_best(values)
    top = int(values.mean(axis=1).argmax())
    assert best.best.tolist() == [index == top for index in range(5)]
    assert best.compared.all()
    p_values = np.array([stats.ttest_rel(values[i], values[j]).pvalue for i in range(5) for j in range(i)])
    ordered = np.sort(p_values)
    # Holm's procedure refuses one by one, from the smallest, as long as p is at most 5 % over the tests that are left.
    failed = np.flatnonzero(ordered > 0.05 / np.arange(10, 0, -1))
    refused = ordered[failed[0]] if len(failed) else np.inf
    expected = [i != top and stats.ttest_rel(values[i], values[top]).pvalue >= refused for i in range(5)]
    assert best.tied.tolist() == expected


@pytest.mark.parametrize(("targets", "is_tied"), [(3, True), (5, True), (6, False), (9, False)])
def test_a_difference_that_is_the_same_everywhere_is_significant_from_six_targets_on(
    targets: int, is_tied: bool
) -> None:
    values = np.linspace(0.3, 0.8, targets)
    assert find_best(np.array([values, values - 0.1])).tied.tolist() == [False, is_tied]


def test_metrics_without_values_are_not_compared() -> None:
    values = np.array([[0.5, np.nan, 0.6], [0.1, np.nan, 0.2], [0.9, np.nan, np.nan]])
    best = find_best(values)
    assert best.compared.tolist() == [True, True, False], "no metric has a value on the second target"
    assert best.best.tolist() == [True, False, False]
    for nothing in ([[0.5, 0.6]], [[0.5, np.nan], [np.nan, 0.5]], [[np.nan], [np.nan]]):
        best = find_best(np.array(nothing))
        assert not any(flags.any() for flags in (best.best, best.tied))

"""The best metrics against all paired tests of SciPy, and what cannot be compared."""

import numpy as np
import pytest
from scipy import stats

from headstart.metrics.ranking.over_targets import find_best


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


def test_two_that_are_close_are_tied_where_they_are_not_equal() -> None:
    values = np.array([[0.5, 0.6, 0.7, 0.8], [0.52, 0.58, 0.71, 0.79], [0.1, 0.2, 0.3, 0.41]])
    values = np.tile(values, 2) + np.repeat([0, 0.1], 4)
    best = find_best(values)
    assert (best.best.tolist(), best.tied.tolist()) == ([True, True, False], [False, False, False])
    values[0] += [0.01, *[0] * 7]
    best = find_best(values)
    assert (best.best.tolist(), best.tied.tolist()) == ([True, False, False], [False, True, False])


def test_equal_values_are_equally_good() -> None:
    values = np.array([[0.5, 0.5], [0.5, 0.5 + 1e-15], [0.2, 0.6]])
    best = find_best(values)
    assert (best.best.tolist(), best.tied.tolist()) == ([True, True, False], [False, False, True])


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


@pytest.mark.parametrize("values", [[[0.5, 0.6]], [[0.5, np.nan], [np.nan, 0.5]], [[np.nan], [np.nan]]])
def test_nothing_is_the_best_of_one(values: list[list[float]]) -> None:
    best = find_best(np.array(values))
    assert not any(flags.any() for flags in (best.best, best.tied))

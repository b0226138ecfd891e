"""Evaluation measures against SciPy, pool by pool, and against values worked out by hand."""

import warnings
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics.ranking.ranking_measures import (
    kendall,
    measure_pools,
    pearson,
    rel_at_1,
    weighted_kendall,
)


def scipy_measures(x: NDArray[Any], y: NDArray[Any]) -> list[float]:
    """Compute the measures with SciPy, which warns of constant input and returns NaN for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        correlations = [stats.weightedtau(x, y), stats.kendalltau(x, y), stats.pearsonr(x, y)]
        return [*(float(result.statistic) for result in correlations), float(y[np.argmax(x)] / np.max(y))]


def sample_pools(generator: np.random.Generator, sources: int, size: int) -> NDArray[np.intp]:
    pools = np.array(list(combinations(range(sources), size)))
    return pools[generator.permutation(len(pools))[:25]]


@pytest.mark.parametrize("distinct", [2, 3, 6, None])
@pytest.mark.parametrize("size", [2, 3, 9])
def test_pools_equal_scipy(size: int, distinct: int | None) -> None:
    """Few distinct values give ties in scores, in performances, in both, and pools in which all are tied."""
    generator = np.random.default_rng(size)
    undefined = 0
    for sources in range(size, 13):
        scores: NDArray[Any] = generator.normal(size=(3, sources))
        performances: NDArray[Any] = generator.uniform(0.1, 1, sources)
        if distinct is not None:
            scores = 0.1 * generator.integers(distinct, size=(3, sources))
            performances = 0.1 * (1 + generator.integers(distinct, size=sources))
        pools = sample_pools(generator, sources, size)
        result = measure_pools(scores, performances, pools)
        expected = np.array([[scipy_measures(row[pool], performances[pool]) for row in scores] for pool in pools])
        np.testing.assert_allclose(result, expected.transpose(0, 2, 1), rtol=0, atol=1e-12, equal_nan=True)
        undefined += int(np.isnan(result).sum())
    # Only small pools are sure to have constant input.
    if distinct is None:
        assert undefined == 0
    elif size <= 3:
        assert undefined > 0


def test_kendall_by_hand() -> None:
    # One exchange at the top, weights 1, 1/2, 1/3 by either ranking: (3/2 + 4/3 + 5/6 - 2 * 3/2) / (11/3) = 2/11.
    assert weighted_kendall([2, 3, 1], [3, 2, 1]) == pytest.approx(2 / 11)
    # An exchange at the bottom costs less: 1 - 2 (5/6) / (11/3).
    assert weighted_kendall([3, 1, 2], [3, 2, 1]) == pytest.approx(6 / 11)
    assert kendall([2, 3, 1], [3, 2, 1]) == kendall([3, 1, 2], [3, 2, 1]) == pytest.approx(1 / 3)
    # Five untied pairs of scores, six of performances, all five in agreement.
    assert kendall([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / np.sqrt(5 * 6))


@pytest.mark.parametrize(("scores", "performances"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [2, 2, 2])])
def test_constant_input_has_no_correlation(scores: list[float], performances: list[float]) -> None:
    for measure in (weighted_kendall, kendall, pearson):
        assert isnan(measure(scores, performances))
    result = measure_pools([scores], performances, [[0, 1, 2]])[0, :, 0]
    assert np.isnan(result[:3]).all()
    assert result[3] == rel_at_1(scores, performances)


@pytest.mark.parametrize(
    ("scores", "performances", "expected"),
    [
        # Of equal scores the first counts; performances are not shifted so that the lowest is 0.
        ([1, 5, 5], [0.9, 0.3, 0.6], 1 / 3),
        ([1, 2], [0, 0], np.nan),
        ([1, 0], [-2, -0.5], np.nan),
        ([1, 0], [-1, 3], np.nan),
        ([1, 0], [-1, 0], np.nan),
    ],
)
def test_rel_at_1_at_its_edges(scores: list[float], performances: list[float], expected: float) -> None:
    assert rel_at_1(scores, performances) == pytest.approx(expected, nan_ok=True)
    pool = np.arange(len(scores))
    np.testing.assert_allclose(measure_pools([scores], performances, [pool, pool[::-1]])[:, 3, 0], expected)


def test_pearson_keeps_its_digits_at_any_scale_and_beside_a_large_value_outside_the_pool() -> None:
    y, expected = np.array([1.0, 3.0, 4.0, 5.0]), pearson([1, 2, 4], [1, 3, 4])
    for x in ([1e-200, 2e-200, 4e-200, 0], [1e200, 2e200, 4e200, 0], [1e6 + 1, 1e6 + 2, 1e6 + 4, -1e9]):
        np.testing.assert_allclose(measure_pools([x], y, [[0, 1, 2]])[0, 2, 0], expected, rtol=1e-12)


WRONG: list[tuple[Any, Any, Any, str]] = [
    ([[1, 2]], [1, 2, 3], [[0, 1]], "shapes"),
    ([[1, np.nan]], [1, 2], [[0, 1]], "scores"),
    ([[1, 2]], [1, np.inf], [[0, 1]], "performances"),
    ([[1, 2]], [1, 2], [[0.0, 1.0]], "pools"),
    ([[1, 2]], [1, 2], [[0, 2]], "pools: indices from 0 to 2"),
    ([[1, 2]], [1, 2], [[1, 1]], "pools: a pool holds a source twice"),
]


def test_wrong_input_is_named() -> None:
    for scores, performances, pools, message in WRONG:
        with pytest.raises(ValueError, match=message):
            measure_pools(scores, performances, pools)

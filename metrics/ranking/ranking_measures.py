"""Evaluation measures: how well a transferability metric predicts performances, on one pool of sources or many."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.metrics.arrays import Floats, Indices

Measure = Literal["weighted_kendall", "kendall", "pearson", "rel_at_1"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

Signs = NDArray[np.int8]
# Whole numbers, by source and pool.
Counts = NDArray[np.float32]


def pearson(scores: ArrayLike, performances: ArrayLike) -> float:
    """Correlate scores and performances linearly.

    Args:
        scores: Scores of the k sources `[k]`, finite; k is at least 2.
        performances: Performances of the sources after transfer, `[k]`, finite.

    Returns:
        Pearson's correlation coefficient, NaN where either is constant.
    """
    return _correlate("pearsonr", scores, performances)


def kendall(scores: ArrayLike, performances: ArrayLike) -> float:
    """Correlate the rankings of scores and performances, with arguments as in `pearson`.

    Returns:
        Kendall's tau-b (Kendall, The treatment of ties in ranking problems, Biometrika 1945), NaN where either is
        constant.
    """
    return _correlate("kendalltau", scores, performances, variant="b")


def weighted_kendall(scores: ArrayLike, performances: ArrayLike) -> float:
    """Correlate the rankings of scores and performances, arguments as in `pearson`, with more weight on the best.

    A pair of sources weighs 1 / (1 + r) + 1 / (1 + s), where r and s are their ranks from 0. The coefficient is the
    mean of two values: one with ranks by score (ties by performance), one with ranks by performance (ties by score).
    Source: Vigna, A weighted correlation index for rankings with ties, WWW 2015, section 4, as
    `scipy.stats.weightedtau` computes it with `rank=True`. It is NaN where either is constant.
    """
    return _correlate("weightedtau", scores, performances, rank=True)


def rel_at_1(scores: ArrayLike, performances: ArrayLike) -> float:
    """Compare the performance of the source with the highest score with the best one, arguments as in `pearson`.

    The relative top-1 accuracy of Li et al., Ranking neural checkpoints, CVPR 2021, section 4. Among equal scores the
    first source is taken. It is NaN where the best performance is 0 or any is negative, as with negated losses and
    errors: a ratio needs a scale that starts at 0.
    """
    x, y = _pair(scores, performances)
    return float(_relative_to_best(y[x.argmax()], y.max(), y))


@dataclass(frozen=True)
class EvaluationMeasure:
    """An evaluation measure.

    Attributes:
        title: Its name in reports.
        compute: Returns its value from scores and performances, `[k]` each.
        lowest: Its lowest possible value; the highest is 1.
    """

    title: str
    compute: Callable[[ArrayLike, ArrayLike], float]
    lowest: float = -1.0


EVALUATION_MEASURES: dict[Measure, EvaluationMeasure] = {
    "weighted_kendall": EvaluationMeasure("weighted Kendall", weighted_kendall),
    "kendall": EvaluationMeasure("Kendall", kendall),
    "pearson": EvaluationMeasure("Pearson", pearson),
    "rel_at_1": EvaluationMeasure("Rel@1", rel_at_1, lowest=0.0),
}


def measure_pools(scores: ArrayLike, performances: ArrayLike, pools: ArrayLike) -> Floats:
    """Compute all measures of several metrics for many pools of the same sources at the same time.

    Whether source i is ranked above, beside or below source j does not depend on the pool. The membership of sources in
    pools is a matrix of zeros and ones. Ranks within pools and sums over pairs in pools are products of fixed `[n, n]`
    matrices with it, without a loop over pools. They count, in single precision, which is exact for whole numbers up to
    2^24 sources. Memory is about 100 bytes per source and pool; blocks of pools that fit into the cache are fastest.

    Args:
        scores: Scores by m metrics of all n sources, `[m, n]`, finite.
        performances: Performances of the sources after transfer, `[n]`, finite. Where any is negative, these are not
            counted from 0, and Rel@1 is NaN for all pools, also for those without it.
        pools: Indices of the sources in each pool, `[pools, k]`, without repeats; k is at least 2.

    Returns:
        `[pools, measures, m]` with the measures in the order of `MEASURES`; equal to the functions of one pool.

    Raises:
        ValueError: Shapes or values do not fit.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(performances, dtype=np.float64)
    _check(x, y, 2)
    members = _members(pools, len(y))

    inside = np.zeros((len(y), members.shape[1]), dtype=np.float32)
    inside[members, np.arange(members.shape[1])] = 1
    if inside.sum(dtype=np.float64) != members.size:
        raise ValueError("pools: a pool holds a source twice; give each source once")

    y_signs, y_distinct = _signs(y), len(np.unique(y)) == len(y)
    y_untied = _untied(y_signs, inside, len(members))
    y_weights = _weights(inside, y, y)
    y_direction = _direction(y.take(members))
    best = y.take(members).max(axis=0)

    measured = np.empty((members.shape[1], len(MEASURES), len(x)))
    for metric, values in enumerate(x):
        x_signs = _signs(values)
        # Of each source: members ranked alike with it by both, less the others; and members that it is not tied with.
        counts = _multiply(x_signs * y_signs, inside), _untied(x_signs, inside, len(members)), y_untied
        # Scores decide between sources with the same performance alone.
        by_score, by_performance = _weights(inside, values, y), y_weights if y_distinct else _weights(inside, y, values)
        measured[:, 0, metric] = (_tau(by_score, *counts) + _tau(by_performance, *counts)) / 2
        measured[:, 1, metric] = _tau(inside, *counts)
        measured[:, 2, metric] = _sum_of_products(_direction(values.take(members)), y_direction).clip(-1, 1)
        measured[:, 3, metric] = _relative_to_best(y.take(_top(values, members)), best, y)
    return measured


def _members(pools: ArrayLike, sources: int) -> Indices:
    """Return the pools in columns: sums over a pool are then sums over rows, which NumPy computes fastest."""
    members = np.asarray(pools)
    if members.ndim != 2 or members.shape[1] < 2 or not np.issubdtype(members.dtype, np.integer):
        raise ValueError(
            f"pools: {members.dtype} {list(members.shape)} given; integers [pools, k] with k of at least 2 are needed"
        )
    if members.size and not 0 <= members.min() <= members.max() < sources:
        raise ValueError(
            f"pools: indices from {members.min()} to {members.max()} given; 0 to {sources - 1} are allowed"
        )
    return np.ascontiguousarray(members.T, dtype=np.intp)


def _positions(first: Floats, second: Floats) -> Indices:
    """Rank all sources from the last to the first: by one key, then by another."""
    positions = np.empty(len(first), dtype=np.intp)
    positions[np.lexsort((second, first))] = np.arange(len(first))
    return positions


def _signs(values: Floats) -> Signs:
    """Return the signs of the differences between all pairs of sources, `[n, n]`."""
    above = (values[:, None] > values).view(np.int8)
    return above - above.T


def _untied(signs: Signs, inside: Counts, size: int) -> Counts:
    """Count the members of the pool that each source of it is not tied with, `[n, pools]`."""
    if np.count_nonzero(signs) == signs.size - len(signs):
        return np.full_like(inside, size - 1)
    return _multiply(np.abs(signs), inside)


def _weights(inside: Counts, first: Floats, second: Floats) -> Floats:
    """Compute 1 / (1 + rank within the pool) `[n, pools]`, 0 outside the pool."""
    positions = _positions(first, second)
    ranks = _multiply((positions > positions[:, None]).view(np.int8), inside)
    return np.divide(inside, 1 + ranks, dtype=np.float64)


def _multiply(matrix: Signs, inside: Counts) -> Counts:
    """Multiply `[n, n]` with `[n, pools]`."""
    return matrix.astype(np.float32) @ inside


def _tau(weights: Floats | Counts, alike: Counts, x_untied: Counts, y_untied: Counts) -> Floats:
    """Compute tau-b `[pools]` where a pair weighs the sum of its sources' weights, from counts by source `[n, pools]`.

    The sum over pairs (i, j) of (w_i + w_j) s_ij is the sum over i of w_i times the sum over j of s_ij.
    """
    agreement, x_total, y_total = (_sum_of_products(weights, counts) for counts in (alike, x_untied, y_untied))
    return _divide(agreement, np.sqrt(x_total) * np.sqrt(y_total)).clip(-1, 1)


def _direction(values: Floats) -> Floats:
    """Centre each pool's values `[k, pools]` and scale them to norm 1; NaN where they are all the same.

    Centred first, because sums of squares in one pass cancel digits.
    """
    constant = values.max(axis=0) == values.min(axis=0)
    values = values - values.mean(axis=0)
    values[:, constant] = 0
    # Scaled before it is squared, so that nothing under- or overflows.
    values = _divide(values, np.abs(values).max(axis=0))
    return values / np.sqrt(_sum_of_products(values, values))


def _top(values: Floats, members: Indices) -> Indices:
    """Find the source of each pool with the highest score, among equal ones that of the lowest index."""
    positions = _positions(values, -np.arange(len(values), dtype=np.float64))
    return np.asarray(np.argsort(positions)[positions.take(members).max(axis=0)])


def _relative_to_best(chosen: ArrayLike, best: ArrayLike, performances: Floats) -> Floats:
    """Divide performances of chosen sources by the best ones; NaN where that is 0 or any of all is negative."""
    return _divide(np.asarray(chosen), np.asarray(best) if performances.min() >= 0 else np.zeros_like(best))


def _sum_of_products(left: Floats | Counts, right: Floats | Counts) -> Floats:
    return np.asarray(np.einsum("np,np->p", left, right, dtype=np.float64))


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, and return NaN without a warning where the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


def _correlate(correlation: str, scores: ArrayLike, performances: ArrayLike, **options: Any) -> float:
    """Correlate by a function of `scipy.stats`; NaN where scores or performances are constant."""
    from scipy import stats

    x, y = _pair(scores, performances)
    varies = np.ptp(x) > 0 and np.ptp(y) > 0
    return float(getattr(stats, correlation)(x, y, **options).statistic) if varies else math.nan


def _pair(scores: ArrayLike, performances: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(performances, dtype=np.float64)
    _check(x, y, 1)
    return x, y


def _check(scores: Floats | Floats, performances: Floats, axes: int) -> None:
    """Check that there are two or more sources, as many in both, and only finite numbers."""
    shapes = f"{list(scores.shape)} and {list(performances.shape)}"
    if scores.ndim != axes or performances.ndim != 1 or scores.shape[-1] != len(performances) or len(performances) < 2:
        needed = "[m, n] and [n]" if axes == 2 else "[k] and [k]"
        raise ValueError(f"scores, performances: shapes {shapes} given; {needed} of two or more sources are needed")
    for name, values in (("scores", scores), ("performances", performances)):
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name}: {int((~np.isfinite(values)).sum())} of {values.size} are not finite; all must be"
            )

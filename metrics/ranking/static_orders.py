"""Orders of sources that are independent of the target, and the agreement of metrics beyond them."""

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES, kendall, measure_pools

# Sources up to which all rankers are measured at once, by matrices of sources by sources.
MOST_AT_ONCE = 500
# Smaller differences of correlations, and of scores relative to the largest, are rounding errors.
SAME, SAME_SCORE = 1e-12, 1e-10


def performance_ranks(performances: Floats, known: Flags) -> Floats:
    """Rank the sources of each target, 1 being the best; equals share the mean of their ranks.

    Args:
        performances: Performance of each source, `[n, t]`.
        known: Which of them count, `[n, t]`.

    Returns:
        Ranks `[n, t]`, NaN where none counts.
    """
    from scipy import stats

    return np.asarray(stats.rankdata(np.where(known, -performances, np.nan), axis=0, nan_policy="omit"))


def mean_ranks_elsewhere(ranks: Floats) -> Floats:
    """Compute each source's mean rank on all other targets, for each target.

    Args:
        ranks: Ranks `[n, t]`, NaN where a source has none.

    Returns:
        Mean ranks `[n, t]`, NaN where a source has no rank on the target itself, or on no other.
    """
    count = np.isfinite(ranks).sum(axis=1, keepdims=True) - 1
    others = np.nansum(ranks, axis=1, keepdims=True) - ranks
    return np.asarray(np.divide(others, count, out=np.full_like(ranks, np.nan), where=count > 0))


def measure_targets(scores: Floats, performances: Floats, known: Flags) -> Floats:
    """Measure how well rankers predict the performances on each target.

    Args:
        scores: Scores by r rankers, `[r, n, t]`, higher being better.
        performances: Performance of each source, `[n, t]`.
        known: Which sources count on which target, `[n, t]`.

    Returns:
        `[r, t, e]` with the measures in the order of `MEASURES`, NaN where one is undefined, and where scores
        do not differ: Rel@1 would choose among equal sources, which the ranker does not.
    """
    measured = np.full((len(scores), known.shape[1], len(MEASURES)), np.nan)
    for target, has_cell in enumerate(known.T):
        if has_cell.sum() > 1:
            on_target = scores[:, has_cell, target]
            ranked = scores_differ(on_target)
            if ranked.any():
                measured[ranked, target] = _measure(on_target[ranked], performances[has_cell, target])
    return measured


def scores_differ(scores: Floats) -> Flags:
    """Return whether scores `[..., n]` are finite and differ by more than rounding errors, `[...]`.

    The bound is relative to the largest, since scores may be of any scale.
    """
    low, high = scores.min(axis=-1), scores.max(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(high - low > SAME_SCORE * np.maximum(np.abs(low), np.abs(high)))


def _measure(scores: Floats, performances: Floats) -> Floats:
    """Measure rankers `[r, n]` on one target, `[r, e]`."""
    if len(performances) <= MOST_AT_ONCE:
        return np.asarray(measure_pools(scores, performances, np.arange(len(performances))[None])[0].T)
    measures = EVALUATION_MEASURES.values()
    return np.array([[measure.compute(row, performances) for measure in measures] for row in scores])


def partial_kendall(first: ArrayLike, second: ArrayLike, given: ArrayLike) -> float:
    """Correlate two rankings without the parts that they share with a third.

    M. G. Kendall, "Partial rank correlation", Biometrika, 1942: (tau_12 - tau_13 tau_23) / sqrt((1 - tau_13^2) (1 -
    tau_23^2)), where tau_12 is the correlation of the first two. Tau-b is the cosine between two vectors, the signs of
    all differences. The partial correlation is therefore the cosine between the first two vectors without their
    projections on the third. It is 0 where two rankings agree no better than their agreement with the third implies. It
    has no p value of its own, and 0 does not mean that they are conditionally independent.

    Args:
        first: Values `[k]`, such as scores of a metric.
        second: Values `[k]`, such as performances.
        given: Values `[k]` of the third ranking.

    Returns:
        The partial correlation. NaN where a ranking is constant, or where one of the first two equals the third or its
        reverse.
    """
    between, one, other = kendall(first, second), kendall(first, given), kendall(second, given)
    left = (1 - one**2) * (1 - other**2)
    return (between - one * other) / math.sqrt(left) if min(1 - one**2, 1 - other**2) > SAME else math.nan


def mean_spearman(performances: Floats, known: Flags) -> float:
    """Correlate the rankings of the sources on two targets by Spearman's rho, and average over all pairs of targets.

    A pair of targets is compared on the sources that count on both. Without ties, Kendall's W of t rankings is (1 + (t
    - 1) rho) / t with this mean (M. G. Kendall and B. Babington Smith, "The problem of m rankings", Annals of
    Mathematical Statistics, 1939).

    Args:
        performances: Performance of each source, `[n, t]`.
        known: Which of them count, `[n, t]`.

    Returns:
        The mean over the pairs of targets on which neither ranking is constant; NaN where there is none.
    """
    correlations = pd.DataFrame(np.where(known, performances, np.nan)).corr("spearman").to_numpy()
    pairs = correlations[np.triu_indices(len(correlations), 1)]
    return float(pairs[np.isfinite(pairs)].mean()) if np.isfinite(pairs).any() else math.nan

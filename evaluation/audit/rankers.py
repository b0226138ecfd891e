"""The rankers of an audit, the mean rank and the metrics, and how well they predict."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import by_measure, over_targets
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.aggregates import bootstrap_counts
from headstart.metrics.ranking.over_targets import FEWEST, find_best, respread
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import (
    mean_ranks_elsewhere,
    measure_targets,
    partial_kendall,
    performance_ranks,
)
from headstart.output.progress import track

MEAN_RANK = "mean_rank"
# Resamples of the targets in which the mean rank is measured again, and fewer for tables of more cells than `LARGE`:
# 50 estimate a standard error within a tenth of it, and 500 sources on 100 targets take 0.2 s each.
RESAMPLES, FEWER, LARGE = 200, 50, 10_000


@dataclass(frozen=True)
class Rankers:
    """Rankers of the sources of a table.

    Attributes:
        names: Names of the r rankers: the mean rank and the metrics of the table.
        scores: Scores, higher being better, `[r, n, t]`; NaN for a target's own source where that has no mean rank.
        measured: How well each predicts the performances by every measure, `[r, t, e]`, NaN where undefined.
    """

    names: list[str]
    scores: Floats
    measured: Floats


def rank_sources(table: TransferTable) -> Rankers:
    """Rank the sources of each target by their mean rank on other targets, and by every metric."""
    elsewhere = -mean_ranks_elsewhere(comparable_ranks(table))
    scores = np.concatenate([elsewhere[None], table.scores])
    return Rankers([MEAN_RANK, *table.metrics], scores, measure_targets(scores, table.performances, table.known))


def comparable_ranks(table: TransferTable) -> Floats:
    """Return the ranks of the sources on each target, `[n, t]`, NaN where a source has none.

    Where a table has holes, targets have different numbers of sources. Ranks are then shares of these, so that rank 50
    of 100 counts as rank 90 of 180.
    """
    ranks = performance_ranks(table.performances, table.known)
    return (ranks - 0.5) / table.known.sum(axis=0) if table.holes.any() else ranks


def measure_resampled(table: TransferTable, counts: Floats) -> Floats:
    """Measure how well the mean rank predicts the performances in resamples of the targets.

    The target that is judged has no part in its ranks, however often it was drawn.

    Args:
        table: Performances.
        counts: How often each target is in each resample, `[resamples, t]`.

    Returns:
        `[resamples, t, e]` as `measure_targets`, for each target as if it was drawn.
    """
    ranks = np.nan_to_num(comparable_ranks(table))
    has_rank = table.known.astype(np.float64)
    measured = np.empty((*counts.shape, len(MEASURES)))
    for target in track(range(len(table.targets)), "resamples of the mean rank", "targets"):
        others = np.where(np.arange(len(table.targets)) == target, 0.0, counts)
        total, drawn = others @ ranks.T, others @ has_rank.T
        elsewhere = -np.divide(total, drawn, out=np.full_like(total, np.nan), where=drawn > 0)
        judged = [target]
        performances, known = table.performances[:, judged], table.known[:, judged]
        measured[:, judged] = measure_targets(elsewhere[:, :, None], performances, known)
    return measured


def given_mean_rank(table: TransferTable, rankers: Rankers) -> Floats:
    """Compute `partial_kendall` of every other ranker with the performances, given the mean rank, `[r - 1, t]`."""
    correlations = np.full((len(rankers.names) - 1, len(table.targets)), np.nan)
    for target, known in enumerate(table.known.T):
        elsewhere, *others = rankers.scores[:, known, target]
        if np.isfinite(elsewhere).all() and known.sum() > 1:
            performances = table.performances[known, target]
            correlations[:, target] = [partial_kendall(scores, performances, elsewhere) for scores in others]
    return correlations


def summarize(table: TransferTable, rankers: Rankers) -> dict[str, Any]:
    """Describe how well every ranker predicts performance over targets, and what is left beside the mean rank.

    The mean rank for each target is estimated from the others. Its intervals and tests, and those of differences from
    it, use a bootstrap's standard error. The bootstrap draws targets and estimates it again.

    Args:
        table: Scores and performances.
        rankers: The rankers of the table, the mean rank first.

    Returns:
        By ranker and measure `rankers` and `minus_mean_rank`, by ranker `kendall_given_mean_rank`, each as
        `over_targets` describes values. By measure `best`, the metrics with the highest mean, and those that do not
        differ from it significantly.
    """
    targets, (mean_rank, *others) = table.targets, rankers.measured
    rest = dict(zip(rankers.names[1:], others, strict=True))

    resamples = RESAMPLES if table.known.size <= LARGE else FEWER
    counts = np.concatenate(list(bootstrap_counts([len(targets)], resamples))).astype(np.float64)
    # Fewer targets have neither intervals nor significant differences.
    resampled = measure_resampled(table, counts) if len(targets) >= FEWEST else np.full((0, *mean_rank.shape), np.nan)

    def describe(values: Floats, in_resamples: Floats, differences: bool = False) -> dict[str, Any]:
        columns = zip(values.T, in_resamples.transpose(2, 0, 1), strict=True)
        spread = np.stack([respread(*pair, counts) for pair in columns], axis=1)
        return by_measure(values, targets, spread, differences)

    beyond = zip(rest, given_mean_rank(table, rankers), strict=True)
    return {
        "rankers": {
            MEAN_RANK: describe(mean_rank, resampled),
            **{name: by_measure(values, targets) for name, values in rest.items()},
        },
        "minus_mean_rank": {
            name: describe(values - mean_rank, values - resampled, differences=True) for name, values in rest.items()
        },
        "kendall_given_mean_rank": {
            name: over_targets(values, targets, (-1.0, 1.0), tested=True) for name, values in beyond
        },
        "best": {measure: _best(table, rest, index) for index, measure in enumerate(MEASURES)},
    }


def _best(table: TransferTable, measured: Mapping[str, Floats], index: int) -> dict[str, Any]:
    """Describe which metrics are the best by a measure, and which have too few values to be compared."""
    if not table.metrics:
        return {"metrics": [], "tied": [], "not_compared": {}}
    values = np.stack([measured[metric][:, index] for metric in table.metrics])
    result, is_defined = find_best(values), np.isfinite(values)
    lacking = zip(table.metrics, is_defined.any(axis=0) & ~is_defined, strict=True)
    return {
        "metrics": [name for name, best in zip(table.metrics, result.best, strict=True) if best],
        "tied": [name for name, tied in zip(table.metrics, result.tied, strict=True) if tied],
        "not_compared": {
            metric: [table.targets[index] for index in np.flatnonzero(lacks)]
            for metric, lacks in lacking
            if lacks.any()
        },
    }

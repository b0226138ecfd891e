"""How well rankers predict performance, summarized over targets, and what is left of it beside the mean rank."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import MEAN_RANK, Rankers, given_mean_rank, measure_resampled
from headstart.evaluation.estimates import by_measure, over_targets
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.aggregates import bootstrap_counts
from headstart.metrics.ranking.best_metrics import find_best
from headstart.metrics.ranking.over_targets import FEWEST, respread
from headstart.metrics.ranking.ranking_measures import MEASURES

# Resamples of the targets in which the mean rank is measured again, and fewer for tables of more cells than `LARGE`:
# 50 estimate a standard error within a tenth of it, and 500 sources on 100 targets take 0.2 s each.
RESAMPLES, FEWER, LARGE = 200, 50, 10_000


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
    resamples = RESAMPLES if table.known.size <= LARGE else FEWER
    counts = np.concatenate(list(bootstrap_counts([len(targets)], resamples))).astype(np.float64)
    # Fewer targets have neither intervals nor significant differences.
    resampled = measure_resampled(table, counts) if len(targets) >= FEWEST else np.full((0, *mean_rank.shape), np.nan)

    def spread(values: Floats, in_resamples: Floats) -> Floats:
        columns = zip(values.T, in_resamples.transpose(2, 0, 1), strict=True)
        return np.stack([respread(*each, counts) for each in columns], axis=1)

    rest = dict(zip(rankers.names[1:], others, strict=True))
    return {
        "rankers": {
            MEAN_RANK: by_measure(mean_rank, targets, spread(mean_rank, resampled)),
            **{name: by_measure(values, targets) for name, values in rest.items()},
        },
        "minus_mean_rank": {
            name: by_measure(
                values - mean_rank, targets, spread(values - mean_rank, values - resampled), differences=True
            )
            for name, values in rest.items()
        },
        "kendall_given_mean_rank": {
            name: over_targets(values, targets, (-1.0, 1.0), tested=True)
            for name, values in zip(rest, given_mean_rank(table, rankers), strict=True)
        },
        "best": {measure: _best(table, rest, index) for index, measure in enumerate(MEASURES)},
    }


def _best(table: TransferTable, measured: Mapping[str, Floats], index: int) -> dict[str, Any]:
    """Describe which metrics are the best by a measure, and which have too few values to be compared."""
    if not table.metrics:
        return {"metrics": [], "tied": [], "not_compared": {}}
    values = np.stack([measured[metric][:, index] for metric in table.metrics])
    found, known = find_best(values), np.isfinite(values)
    missing = zip(table.metrics, known.any(axis=0) & ~known, strict=True)
    return {
        "metrics": [name for name, best in zip(table.metrics, found.best, strict=True) if best],
        "tied": [name for name, tied in zip(table.metrics, found.tied, strict=True) if tied],
        "not_compared": {
            metric: [table.targets[each] for each in np.flatnonzero(own)] for metric, own in missing if own.any()
        },
    }

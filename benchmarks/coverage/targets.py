"""Studies of targets."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from headstart.benchmarks.frame import Shares, Values, covers, simulate
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import RESAMPLES, given_mean_rank, measure_resampled, rank_sources
from headstart.metrics.ranking.aggregates import bootstrap_counts
from headstart.metrics.ranking.over_targets import mean_interval, respread
from headstart.metrics.ranking.ranking_measures import MEASURES

RANKED = 14
# Standard deviation of the sources' quality, relative to the noise on a target of middling noise.
ORDERS = {"weak": 0.3, "strong": 2.5}
KENDALL = MEASURES.index("kendall")


def draw_table(quality: Values, suited: Values, generator: np.random.Generator, size: int) -> TransferTable:
    """Draw a table of so many targets, with a metric that sees the performances with noise.

    Args:
        quality: Quality of each source, `[n]`.
        suited: A property of each source, `[n]`, which suits some targets.
        generator: Source of randomness.
        size: Number of targets.
    """
    noise = np.exp(generator.normal(0, 0.4, size)) * generator.normal(size=(RANKED, size))
    performances = quality[:, None] + 0.7 * suited[:, None] * generator.normal(size=size) + noise
    scores = performances + generator.normal(size=performances.shape)
    sources, targets = ([str(index) for index in range(count)] for count in performances.shape)
    return TransferTable.of_arrays(["metric"], sources, targets, scores[None], 1 / (1 + np.exp(-performances)))


def estimate(table: TransferTable) -> Values:
    """Return the mean rank's Kendall, that of the metric less it, and that of the metric given it, `[3, t]`."""
    rankers = rank_sources(table)
    mean_rank, metric = rankers.measured[:, :, KENDALL]
    return np.array([mean_rank, metric - mean_rank, given_mean_rank(table, rankers)[0]])


def mean_rank_held(generator: np.random.Generator, size: int, order: str, tables: int) -> Shares:
    """Sample a population, and return how often intervals of its tables hold, and how wide those of the mean rank are.

    Args:
        generator: Source of randomness.
        size: Number of targets of a table.
        order: Name of the strength of the static order.
        tables: Number of tables.
    """
    draw = partial(draw_table, ORDERS[order] * generator.normal(size=RANKED), generator.normal(size=RANKED), size=size)
    drawn = [np.nanmean(estimate(draw(generator)), axis=1) for _ in range(10 * tables)]
    truth = np.nanmean(drawn, axis=0)
    counts = np.concatenate(list(bootstrap_counts([size], RESAMPLES))).astype(np.float64)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        table = draw(generator)
        mean_rank, difference, conditional = estimate(table)
        resampled = measure_resampled(table, counts)[:, :, KENDALL]
        metric = mean_rank + difference

        spreads = {
            "over targets": mean_rank,
            "bootstrap": respread(mean_rank, resampled, counts),
        }
        ends = {name: mean_interval(values, -1.0, 1.0) for name, values in spreads.items()}
        less = respread(difference, resampled=metric - resampled, counts=counts)
        return {
            **{f"{name}: held": covers(its, truth[0]) for name, its in ends.items()},
            **{f"{name}: width": its[1] - its[0] for name, its in ends.items()},
            "difference, over targets": covers(mean_interval(difference, -2.0, 2.0), truth[1]),
            "difference, bootstrap": covers(mean_interval(less, -2.0, 2.0), truth[1]),
            "given it, over targets": covers(mean_interval(conditional[np.isfinite(conditional)], -1.0, 1.0), truth[2]),
        }

    return simulate(trial, tables, seed=int(generator.integers(2**32)))


def mean_rank(populations: int = 4, tables: int = 25) -> Iterator[tuple[str, Shares]]:
    """The audit's mean rank, which is judged on the targets that it comes from."""
    for size, order in product((6, 9), ORDERS):
        trial = partial(mean_rank_held, size=size, order=order, tables=tables)
        yield f"{size} targets, {order} static order", simulate(trial, populations, seed=size)


BENCHMARKS = (mean_rank,)

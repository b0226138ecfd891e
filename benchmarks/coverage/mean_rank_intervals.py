"""How often intervals of the audit's mean rank hold, which is estimated from the targets that it is judged on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from headstart.benchmarks.coverage.frame import Shares, Values, holds, print_table, simulate
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import Facts, given_mean_rank, measure_resampled, rank_sources
from headstart.evaluation.audit.summaries import RESAMPLES
from headstart.metrics.ranking.aggregates import bootstrap_counts, jackknife_values
from headstart.metrics.ranking.over_targets import mean_interval, respread
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import measure_targets, performance_ranks

SOURCES = 14
# Standard deviation of the sources' quality, relative to the noise on a target of middling noise.
ORDERS = {"weak": 0.3, "strong": 2.5}
KENDALL = MEASURES.index("kendall")


@dataclass(frozen=True)
class Population:
    """Targets on which sources differ by their quality, by a property that suits some targets, and by noise.

    Attributes:
        quality: Quality of each source, `[n]`.
        property: Property of each source, `[n]`.
    """

    quality: Values
    property: Values

    def table(self, generator: np.random.Generator, size: int) -> TransferTable:
        """Draw a table of so many targets, with a metric that sees the performances with noise."""
        noise = np.exp(generator.normal(0, 0.4, size)) * generator.normal(size=(SOURCES, size))
        performances = self.quality[:, None] + 0.7 * self.property[:, None] * generator.normal(size=size) + noise
        scores = performances + generator.normal(size=performances.shape)
        sources, targets = ([str(index) for index in range(count)] for count in performances.shape)
        chances = 1 / (1 + np.exp(-performances))
        return TransferTable.complete(["metric"], sources, targets, scores[None], chances)


def estimate(table: TransferTable) -> Values:
    """Return the mean rank's Kendall, that of the metric less it, and that of the metric given it, `[3, t]`."""
    rankers = rank_sources(table, Facts())
    mean_rank, metric = rankers.measured[:, :, KENDALL]
    return np.array([mean_rank, metric - mean_rank, given_mean_rank(table, rankers)[0]])


def without_each(table: TransferTable) -> Values:
    """Return the mean rank's mean Kendall with each target left out, of its ranks, too, `[t]`."""
    ranks, count = performance_ranks(table.performances, table.known), len(table.targets)
    others = ranks.sum(axis=1)[None, :, None] - ranks.T[:, :, None] - ranks[None]
    others[np.arange(count), :, np.arange(count)] = np.nan
    return np.asarray(np.nanmean(measure_targets(-others, table.performances, table.known)[:, :, KENDALL], axis=1))


def coverage(size: int, order: str, populations: int, tables: int) -> Shares:
    """Return how often intervals hold, and how wide those of the mean rank are.

    Args:
        size: Number of targets of a table.
        order: Name of the strength of the static order.
        populations: Number of populations.
        tables: Number of tables of each.
    """
    return simulate(lambda generator: _population_shares(generator, size, order, tables), populations, seed=size)


def _population_shares(generator: np.random.Generator, size: int, order: str, tables: int) -> Shares:
    """Sample a population, and return the shares of its tables."""
    population = Population(ORDERS[order] * generator.normal(size=SOURCES), generator.normal(size=SOURCES))
    drawn = [np.nanmean(estimate(population.table(generator, size)), axis=1) for _ in range(10 * tables)]
    truth = np.nanmean(drawn, axis=0)
    counts = np.concatenate(list(bootstrap_counts([size], RESAMPLES))).astype(np.float64)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        table = population.table(generator, size)
        mean_rank, difference, given = estimate(table)
        resampled = measure_resampled(table, counts)[:, :, KENDALL]
        metric = mean_rank + difference
        spreads = {
            "over targets": mean_rank,
            "jackknife": jackknife_values(mean_rank.mean(), without_each(table)),
            "bootstrap": respread(mean_rank, resampled, counts),
        }
        ends = {name: mean_interval(values, -1.0, 1.0) for name, values in spreads.items()}
        less = respread(difference, resampled=metric - resampled, counts=counts)
        return {
            **{f"{name}: held": holds(its, truth[0]) for name, its in ends.items()},
            **{f"{name}: width": its[1] - its[0] for name, its in ends.items()},
            "difference, over targets": holds(mean_interval(difference, -2.0, 2.0), truth[1]),
            "difference, bootstrap": holds(mean_interval(less, -2.0, 2.0), truth[1]),
            "given it, over targets": holds(mean_interval(given[np.isfinite(given)], -1.0, 1.0), truth[2]),
        }

    return simulate(trial, tables, seed=int(generator.integers(2**32)))


def main(populations: int = 4, tables: int = 50) -> None:
    """Print shares of intervals that hold, and mean widths in hundredths, for weak and strong static orders.

    Args:
        populations: Number of populations.
        tables: Number of tables of each.
    """

    def cases() -> Iterator[tuple[str, Shares]]:
        for size, order in product((6, 9), ORDERS):
            yield f"{size} targets, {order} static order", coverage(size, order, populations, tables)

    print_table(cases())

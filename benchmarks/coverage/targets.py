"""Studies of targets."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from headstart.benchmarks.frame import Shares, Values, covers, simulate
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import RESAMPLES, given_mean_rank, measure_resampled, rank_sources
from headstart.evaluation.stability.study import COMPONENTS, Study, run_study
from headstart.evaluation.stability.study_tables import moves_most, setup_stability_interval
from headstart.metrics.ranking.aggregates import bootstrap_counts
from headstart.metrics.ranking.over_targets import find_best, mean_interval, respread
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import measure_targets

RANKED = 14
# Standard deviation of the sources' quality, relative to the noise on a target of middling noise.
ORDERS = {"weak": 0.3, "strong": 2.5}
SOURCES, POOL, TARGETS = 8, 6, 400
# Noise in the scores of each metric, relative to the spread of the sources.
NOISE = np.array([0.3, 0.35, 0.9, 1.2])
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


def stability_held(generator: np.random.Generator, size: int, studies: int) -> Shares:
    """Sample a population, and return how often intervals and ties of tables of some of its targets hold for all.

    Args:
        generator: Source of randomness.
        size: Number of targets of a table.
        studies: Number of tables.
    """
    of_sources = generator.normal(size=(SOURCES, 1))
    performances = of_sources + generator.normal(size=(SOURCES, TARGETS))
    spread = NOISE[:, None, None] * np.exp(generator.normal(0, 0.5, (len(NOISE), 1, TARGETS)))
    scores = performances + spread * generator.normal(size=(len(NOISE), SOURCES, TARGETS))
    performances = performances - performances.min()

    truth = {name: agreement.mean or 0.0 for name, agreement in _study(scores, performances).setup_stability.items()}
    everywhere = np.ones(performances.shape, dtype=np.bool_)
    values = measure_targets(scores, performances, everywhere)[:, :, 0]

    def trial(generator: np.random.Generator) -> dict[str, bool | np.ndarray]:
        targets = generator.choice(TARGETS, size, replace=False)
        study, sampled = _study(scores[:, :, targets], performances[:, targets]), values[:, targets]
        components = {name: covers(setup_stability_interval(study, name), truth[name]) for name in COMPONENTS}
        most, result, best = moves_most(study), find_best(sampled), values.mean(axis=1).argmax()
        return {
            **components,
            "difference": most is not None and covers(most["ci95"], truth[most["next"]] - truth[most["component"]]),
            "mean of a metric": covers(mean_interval(sampled[0], -1.0, 1.0), values[0].mean()),
            "the best is the best or tied": result.best[best] or result.tied[best],
        }

    return simulate(trial, studies, seed=int(generator.integers(2**32)))


def _study(scores: Values, performances: Values) -> Study:
    metrics, sources, targets = ([str(index) for index in range(count)] for count in scores.shape)
    table = TransferTable.of_arrays(metrics, sources, targets, scores, performances)
    return run_study(table, Pools(len(sources), POOL))


def mean_rank(populations: int = 4, tables: int = 25) -> Iterator[tuple[str, Shares]]:
    """The audit's mean rank, which is judged on the targets that it comes from."""
    for size, order in product((6, 9), ORDERS):
        trial = partial(mean_rank_held, size=size, order=order, tables=tables)
        yield f"{size} targets, {order} static order", simulate(trial, populations, seed=size)


def stability(populations: int = 40, studies: int = 10) -> Iterator[tuple[str, Shares]]:
    """Setup stability and the best metric, over targets."""
    for size in (6, 7, 9, 17):
        yield f"{size} targets", simulate(partial(stability_held, size=size, studies=studies), populations, seed=size)


BENCHMARKS = (mean_rank, stability)

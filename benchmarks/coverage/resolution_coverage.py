"""How often a leaderboard's intervals hold and its tests reject: false finds, intervals of ranks, attained power."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from headstart.benchmarks.coverage.frame import (
    MANY,
    Shares,
    holds,
    print_table,
    samples_to_criterion,
    simulate,
)
from headstart.metrics.ranking.aggregates import ranks
from headstart.metrics.sample_efficiency.resolution import compare_all_pairs, orderings_needed, rank_intervals
from headstart.metrics.sample_efficiency.scores import median_interval, t_interval

# Mean samples of nine methods.
FIELDS = {
    "far apart": (10, 15, 20, 27, 36, 48, 60, 80, 110),
    "close": (20, 20.5, 21, 21.5, 22, 22.5, 23, 23.5, 24),
    "nearly equal": (20, 20.05, 20.1, 20.15, 20.2, 20.25, 20.3, 20.35, 20.4),
    "equal": (20,) * 9,
}
# Standard deviations of the logarithms of skewed samples.
SPREADS = np.linspace(0.1, 1.2, 9)
# Methods beside two that need 20 samples and a little more: none, some that need more, and many that are alike.
OTHERS: tuple[tuple[float, ...], ...] = ((), (30, 36, 43, 52, 62, 74, 89), (30,) * 12)
PILOTS = 50


def rank_coverage(means: Sequence[float], orderings: int, leaderboards: int) -> Shares:
    """Return how often a pair of methods is significantly different, and how often intervals hold all ranks.

    Args:
        means: Mean samples of each method. Equal methods have no true ranks: their intervals must span all ranks.
        orderings: Number of orderings.
        leaderboards: Number of leaderboards.
    """
    true_ranks = ranks(samples_to_criterion(np.random.default_rng(1), means, MANY).mean(1))
    lowest, highest = (1, len(means)) if len(set(means)) == 1 else (true_ranks, true_ranks)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        values = samples_to_criterion(generator, means, orderings)
        [compared] = compare_all_pairs([values])
        low, high = rank_intervals(values.mean(1), compared.significant).T
        return {"any difference": compared.significant.any(), "all ranks": ((low <= lowest) & (high >= highest)).all()}

    return simulate(trial, leaderboards)


def skewed_false_finds(orderings: int, leaderboards: int) -> Shares:
    """Return how often methods of one mean are significantly different where differences are not symmetric about 0.

    Args:
        orderings: Number of orderings.
        leaderboards: Number of leaderboards.
    """

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        logarithms = SPREADS[:, None] * generator.standard_normal((len(SPREADS), orderings))
        values = 20 * np.exp(logarithms - SPREADS[:, None] ** 2 / 2)
        [compared] = compare_all_pairs([values])
        return {"any difference": compared.significant.any()}

    return simulate(trial, leaderboards, seed=5)


def attained_power(means: Sequence[float], observed: int, experiments: int, pilots: int = PILOTS) -> tuple[int, Shares]:
    """Return how many orderings pilots ask for, and how often experiments of that size find the difference.

    Args:
        means: Mean samples of the methods, first of the two to be compared.
        observed: Number of orderings of a pilot.
        experiments: Number of experiments.
        pilots: Number of pilots, whose median is taken.
    """
    generator, needed = np.random.default_rng(1), []
    for _ in range(pilots):
        values = samples_to_criterion(generator, means, observed)
        [compared] = compare_all_pairs([values])
        needed += orderings_needed(np.diff(values[:2], axis=0).T, compared.levels[:1])
    orderings = int(np.median([np.inf if each is None else each for each in needed]))

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        [compared] = compare_all_pairs([samples_to_criterion(generator, means, orderings)])
        return {"power": compared.significant[0, 1]}

    return orderings, simulate(trial, experiments, generator)


def interval_coverage(orderings: int, limit: float, comparisons: int) -> Shares:
    """Return how often the intervals of the median and of the restricted mean hold the true ones.

    Args:
        orderings: Number of orderings.
        limit: The sample limit.
        comparisons: Number of intervals.
    """
    (population,) = samples_to_criterion(np.random.default_rng(2), (20,), MANY)
    median, mean = np.median(population), np.minimum(population, limit).mean()

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        (values,) = samples_to_criterion(generator, (20,), orderings)
        return {
            "median": holds(median_interval(np.where(values > limit, np.inf, values)), median),
            "restricted mean": holds(t_interval(np.minimum(values, limit)), mean),
        }

    return simulate(trial, comparisons, seed=3)


def main(leaderboards: int = 1_000) -> None:
    """Print shares; intervals and tests are of 95 %, the power of 80 %.

    Args:
        leaderboards: Leaderboards in every line.
    """

    def cases() -> Iterator[tuple[str, Shares]]:
        for (name, means), orderings in product(FIELDS.items(), (10, 30, 100)):
            yield f"{name}, {orderings} orderings", rank_coverage(means, orderings, leaderboards)
        for orderings in (10, 20, 30, 100):
            yield f"skewed, of one mean, {orderings} orderings", skewed_false_finds(orderings, leaderboards)

        for worse, others, observed in product((22, 25), OTHERS, (30, 1_000)):
            needed, power = attained_power((20, worse, *others), observed, leaderboards)
            yield f"20, {worse}, {len(others)} others: {needed} by pilots of {observed}", power
        for orderings in (10, 30, 100):
            yield f"{orderings} orderings", interval_coverage(orderings, 30, 10 * leaderboards)

    print_table(cases())

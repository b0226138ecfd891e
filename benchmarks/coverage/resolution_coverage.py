"""How often a leaderboard's intervals hold, its tests find what is not there, and its power is what it says."""

from __future__ import annotations

from itertools import product

import jsonargparse
import numpy as np
from numpy.typing import NDArray

from headstart.metrics.ranking.aggregates import percentile_interval, ranks
from headstart.metrics.sample_efficiency.resolution import LEVEL, compare_all_pairs, orderings_needed, rank_intervals
from headstart.metrics.sample_efficiency.scores import median_interval, t_interval

# Samples that nine methods need, on average.
FIELDS = {
    "far apart": (10, 15, 20, 27, 36, 48, 60, 80, 110),
    "close": (20, 20.5, 21, 21.5, 22, 22.5, 23, 23.5, 24),
    "nearly equal": (20, 20.05, 20.1, 20.15, 20.2, 20.25, 20.3, 20.35, 20.4),
    "equal": (20,) * 9,
}
SPREAD, CORRELATION, FEWEST = 0.35, 0.6, 10
MANY = 200_000
# Of the logarithms of skewed samples.
SPREADS = np.linspace(0.1, 1.2, 9)
# What else is compared beside two methods that need 20 samples and a little more: nothing, some that need more, and
# many, most of which are alike.
OTHERS: tuple[tuple[float, ...], ...] = ((), (30, 36, 43, 52, 62, 74, 89), (30,) * 12)
Values = NDArray[np.float64]


def draw(generator: np.random.Generator, means: tuple[float, ...], orderings: int) -> Values:
    """Draw samples to criterion, log-normal whole numbers of at least `FEWEST`, that move together over orderings.

    Args:
        generator: Source of randomness.
        means: What each method needs, roughly.
        orderings: How many.

    Returns:
        `[methods, orderings]`.
    """
    own = generator.standard_normal((len(means), orderings))
    logarithms = CORRELATION**0.5 * generator.standard_normal(orderings) + (1 - CORRELATION) ** 0.5 * own
    samples: Values = np.ceil(np.array(means)[:, None] * np.exp(SPREAD * logarithms - SPREAD**2 / 2)) + FEWEST - 1
    return samples


def rank_coverage(means: tuple[float, ...], orderings: int, leaderboards: int) -> dict[str, float]:
    """Draw leaderboards, and count how often intervals of ranks hold those of a very long one.

    Args:
        means: As for `draw`.
        orderings: As for `draw`.
        leaderboards: How many to draw.

    Returns:
        Shares: of leaderboards with a false find between equal methods; of those whose intervals all hold, by the tests
        and by a percentile bootstrap; and of the intervals of the method that is covered least, by both.
    """
    generator = np.random.default_rng(0)
    truth, equal = ranks(draw(generator, means, MANY).mean(1)), len(set(means)) == 1
    held, false = np.zeros((2, leaderboards, len(means)), dtype=bool), 0
    for each in range(leaderboards):
        values = draw(generator, means, orderings)
        apart = compare_all_pairs(values).p_values < LEVEL
        false += equal and bool(apart.any())
        counts = generator.multinomial(orderings, np.full(orderings, 1 / orderings), 500)
        found = [rank_intervals(values.mean(1), apart).T, percentile_interval(ranks(counts @ values.T))]
        # Equal methods have no ranks of their own, and are held where the interval goes from the first to the last.
        lowest, highest = (1, len(means)) if equal else (truth, truth)
        held[:, each] = [(low <= lowest) & (high >= highest) for low, high in found]
    every, least = held.all(2).mean(1), held.mean(1).min(1)
    return {
        "false finds": false / leaderboards,
        "all, tests": every[0],
        "all, bootstrap": every[1],
        "least, tests": least[0],
        "least, bootstrap": least[1],
    }


def skewed_false_finds(orderings: int, leaderboards: int) -> float:
    """Give the share of leaderboards with a false find between methods of one mean, which flips of signs do not suit.

    Differences of skewed samples of unlike spread are not symmetric about their mean, 0.

    Args:
        orderings: How many each leaderboard has.
        leaderboards: How many to draw.
    """
    generator, false = np.random.default_rng(5), 0
    for _ in range(leaderboards):
        logarithms = SPREADS[:, None] * generator.standard_normal((len(SPREADS), orderings))
        values = 20 * np.exp(logarithms - SPREADS[:, None] ** 2 / 2)
        false += bool((compare_all_pairs(values).p_values < LEVEL).any())
    return false / leaderboards


def attained_power(means: tuple[float, ...], observed: int, pilots: int, experiments: int) -> list[float]:
    """Take the number of orderings that pilots ask for, and count how often experiments of that size find a difference.

    Args:
        means: What methods need, the two that are to be told apart first.
        observed: Orderings of a pilot.
        pilots: How many pilots; their median number of orderings is taken.
        experiments: How many experiments of that number.

    Returns:
        The number, and the share of experiments in which the two are told apart, among all pairs.
    """
    generator, asked = np.random.default_rng(1), []
    for _ in range(pilots):
        values = draw(generator, means, observed)
        asked += orderings_needed(np.diff(values[:2], axis=0).T, compare_all_pairs(values).levels[:1])
    needed = int(np.median([np.inf if each is None else each for each in asked]))
    found = [compare_all_pairs(draw(generator, means, needed)).p_values[0, 1] for _ in range(experiments)]
    return [needed, float(np.mean(np.array(found) < LEVEL))]


def interval_coverage(orderings: int, limit: float, comparisons: int) -> list[float]:
    """Count how often the intervals of the median and of the restricted mean hold the true ones.

    Args:
        orderings: How many each interval is from.
        limit: The sample limit.
        comparisons: How many intervals to draw.
    """
    generator = np.random.default_rng(2)
    (whole,) = draw(generator, (20,), MANY)
    median, mean = np.median(whole), np.minimum(whole, limit).mean()
    held = np.zeros(2)
    for _ in range(comparisons):
        (values,) = draw(generator, (20,), orderings)
        censored = np.where(values > limit, np.inf, values)
        ends = (*median_interval(censored), *t_interval(np.minimum(values, limit)))
        held += ends[0] <= median <= ends[1], ends[2] <= mean <= ends[3]
    return list(held / comparisons)


def main(leaderboards: int = 1_000) -> None:
    """Print shares; intervals and tests are of 95 %, the power of 80 %.

    Args:
        leaderboards: Leaderboards that are drawn for every line.
    """
    for name, means in FIELDS.items():
        for orderings in (10, 30, 100):
            found = rank_coverage(means, orderings, leaderboards)
            shares = "  ".join(f"{what} {share:.1%}" for what, share in found.items())
            print(f"{name}, {orderings} orderings:  {shares}", flush=True)
    for orderings in (10, 20, 30, 100):
        share = skewed_false_finds(orderings, leaderboards)
        print(f"skewed, of one mean, {orderings} orderings: false finds {share:.1%}", flush=True)
    for worse, others, observed in product((22, 25), OTHERS, (30, 1_000)):
        needed, power = attained_power((20, worse, *others), observed, 50, leaderboards)
        asked = f"{needed:.0f} orderings needed by pilots of {observed}"
        among = f"20 samples against {worse} among {len(others)} other methods"
        print(f"{among}: {asked}, power then {power:.1%}", flush=True)
    for orderings in (10, 30, 100):
        median, mean = interval_coverage(orderings, 30, 10 * leaderboards)
        print(f"{orderings} orderings: median {median:.1%}, restricted mean {mean:.1%}", flush=True)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

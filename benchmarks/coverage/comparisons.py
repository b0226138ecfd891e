"""Comparisons and leaderboards."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from headstart.benchmarks.frame import FEWEST_SAMPLES, MANY, Shares, Values, covers, samples_to_criterion, simulate
from headstart.metrics.sample_efficiency.resolution import compare_all_pairs, rank_intervals
from headstart.metrics.sample_efficiency.scores import relative_interval, t_interval

ORDERINGS, BASELINE_SAMPLES, SPREAD = 20, 60, 0.4
RATIOS = (1 / 3, 4 / 7, 1, 7 / 4, 3)
IMPROVEMENT_LIMITS = (float("inf"), 250)
PILED_UP_LIMIT = 500
# Shares of the orderings at the floor, and of those beyond the limit.
PILED_UP = ((0.0, 0.0), (0.5, 0.05), (0.7, 0.1), (0.8, 0.2), (0.9, 0.4))
# Mean samples of nine methods.
MEAN_SAMPLES = {
    "far apart": (10, 15, 20, 27, 36, 48, 60, 80, 110),
    "close": (20, 20.5, 21, 21.5, 22, 22.5, 23, 23.5, 24),
    "nearly equal": (20, 20.05, 20.1, 20.15, 20.2, 20.25, 20.3, 20.35, 20.4),
    "equal": (20,) * 9,
}


def improvement_coverage(ratio: float, correlation: float, limit: float, comparisons: int) -> Shares:
    """Return the coverage of the interval of the relative improvement.

    Args:
        ratio: Mean samples of the custom method divided by those of the baseline.
        correlation: Correlation over orderings of the log samples of the two methods; 0 means unpaired noise.
        limit: The sample limit, to which larger samples to criterion are clipped.
        comparisons: Number of comparisons.
    """
    means = (BASELINE_SAMPLES, ratio * BASELINE_SAMPLES)

    def sample(generator: np.random.Generator, orderings: int) -> Values:
        return np.minimum(samples_to_criterion(generator, means, orderings, SPREAD, correlation), limit)

    baseline, custom = sample(np.random.default_rng(1), 5 * MANY).mean(1)
    truth = 1 - custom / baseline
    return simulate(
        lambda generator: {"Fieller's theorem": covers(relative_interval(*sample(generator, ORDERINGS)), truth)},
        comparisons,
    )


def piled_up_coverage(orderings: int, floored: float, censored: float, comparisons: int) -> Shares:
    """Return the coverage of intervals if many samples to criterion are at the floor or beyond the limit.

    Args:
        orderings: Number of orderings.
        floored: Share of the orderings in which the custom method needs the fewest samples. In the others the
            additional samples are exponentially distributed.
        censored: Share of the orderings in which the baseline is censored; in the others it is log-normal.
        comparisons: Number of comparisons.
    """

    def sample(generator: np.random.Generator, count: int) -> Values:
        custom_samples = generator.exponential(BASELINE_SAMPLES / 4, count) * (generator.random(count) >= floored)
        baseline = BASELINE_SAMPLES * np.exp(SPREAD * generator.standard_normal(count))
        baseline[generator.random(count) < censored] = np.inf
        return FEWEST_SAMPLES + np.minimum(np.ceil([baseline, custom_samples]), PILED_UP_LIMIT)

    baseline, custom = sample(np.random.default_rng(1), 5 * MANY).mean(1)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        values = sample(generator, orderings)
        relative = relative_interval(*values)
        return {
            "t, custom": covers(t_interval(values[1]), custom),
            "t, baseline": covers(t_interval(values[0]), baseline),
            "Fieller's theorem": covers(relative, 1 - custom / baseline),
            "unbounded": np.isinf(relative[0]),
        }

    return simulate(trial, comparisons)


def rank_coverage(means: Sequence[float], orderings: int, leaderboards: int) -> Shares:
    """Return how often any pair of methods differs significantly, and how often the intervals cover all ranks.

    Args:
        means: Mean samples of each method. Equal methods have no true ranks: their intervals must span all ranks.
        orderings: Number of orderings.
        leaderboards: Number of leaderboards.
    """
    true_ranks = rankdata(samples_to_criterion(np.random.default_rng(1), means, MANY).mean(1), axis=-1)
    lowest, highest = (1, len(means)) if len(set(means)) == 1 else (true_ranks, true_ranks)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        values = samples_to_criterion(generator, means, orderings)
        [compared] = compare_all_pairs([values])
        low, high = rank_intervals(values.mean(1), compared.significant).T
        return {"any difference": compared.significant.any(), "all ranks": ((low <= lowest) & (high >= highest)).all()}

    return simulate(trial, leaderboards)


def improvement(comparisons: int = 5_000) -> Iterator[tuple[str, Shares]]:
    """Relative improvement over the baseline."""
    for limit, correlation, ratio in product(IMPROVEMENT_LIMITS, (0, 0.8), RATIOS):
        case = f"samples over the baseline's {ratio:.2f}, correlation {correlation}, limit {limit}"
        yield case, improvement_coverage(ratio, correlation, limit, comparisons)


def piled_up(comparisons: int = 5_000) -> Iterator[tuple[str, Shares]]:
    """Orderings at the floor, or censored."""
    for orderings, (floored, censored) in product((5, 10, 20, 50, 100), PILED_UP):
        case = f"{orderings} orderings, {floored:.0%} at the floor, {censored:.0%} censored"
        yield case, piled_up_coverage(orderings, floored, censored, comparisons)


def ranking(leaderboards: int = 500) -> Iterator[tuple[str, Shares]]:
    """Ranks of nine methods, and false differences where they are equal."""
    for (name, means), orderings in product(MEAN_SAMPLES.items(), (10, 30, 100)):
        yield f"{name}, {orderings} orderings", rank_coverage(means, orderings, leaderboards)


BENCHMARKS = (improvement, piled_up, ranking)

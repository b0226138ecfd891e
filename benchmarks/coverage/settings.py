"""Summaries over settings."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from headstart.benchmarks.frame import Shares, Values, covers, samples_to_criterion, simulate
from headstart.evaluation.leaderboard.over_settings import relative_interquartile_means
from headstart.metrics.ranking.aggregates import bootstrap_counts, probabilities_of_improvement

METHODS = 6
PAIRS = np.triu_indices(METHODS, 1)
# Orderings of each setting.
ORDERINGS = ((10,) * 4, (30,) * 4, (100,) * 4, (20, 20, 20, 200))
# Orderings from which the true values are computed.
MANY = 20_000


def sample_means(generator: np.random.Generator, settings: int) -> Values:
    """Sample mean samples to criterion, `[settings, methods]`: effects of method, setting and of both together."""
    method = np.linspace(-0.4, 0.4, METHODS)
    both = generator.normal(0, 0.3, (settings, METHODS))
    means: Values = 30 * np.exp(generator.normal(0, 0.6, (settings, 1)) + method + both)
    return means


def over_orderings(orderings: tuple[int, ...], leaderboards: int) -> Shares:
    """Return how often the intervals of leaderboards of the same settings hold the values of very long ones.

    Args:
        orderings: Number of orderings of each setting.
        leaderboards: Number of leaderboards.
    """
    generator = np.random.default_rng(3)
    means = sample_means(generator, len(orderings))
    long = [samples_to_criterion(generator, mean, MANY) for mean in means]
    once = [np.ones((1, MANY * len(long)))]
    true_means, _ = relative_interquartile_means(long, once)
    true_improvements = probabilities_of_improvement(long)[0][PAIRS]
    resamples = [*bootstrap_counts(orderings)]

    def trial(generator: np.random.Generator) -> dict[str, Any]:
        values = [samples_to_criterion(generator, mean, n) for mean, n in zip(means, orderings, strict=True)]
        return {
            "interquartile mean": covers(relative_interquartile_means(values, resamples)[1], true_means),
            "probability of improvement": covers(probabilities_of_improvement(values)[1:, *PAIRS], true_improvements),
        }

    return simulate(trial, leaderboards, seed=4)


def over_settings(leaderboards: int = 500) -> Iterator[tuple[str, Shares]]:
    """Interquartile means and probabilities of improvement, over orderings."""
    for orderings in ORDERINGS:
        yield f"settings of {', '.join(map(str, orderings))} orderings", over_orderings(orderings, leaderboards)


BENCHMARKS = (over_settings,)

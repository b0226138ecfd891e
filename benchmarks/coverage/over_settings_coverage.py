"""How often the intervals over settings hold: of interquartile means, probabilities of improvement and stability."""

from __future__ import annotations

from typing import Any

import jsonargparse
import numpy as np

from headstart.benchmarks.coverage.resolution_coverage import Values, draw
from headstart.evaluation.leaderboard.over_settings import relative_interquartile_means
from headstart.evaluation.leaderboard.robustness import Experiment, describe_stability
from headstart.metrics.ranking.aggregates import bootstrap_counts, percentile_interval, probabilities_of_improvement

METHODS = 6
# Orderings that each setting has.
ORDERINGS = ((10,) * 4, (30,) * 4, (100,) * 4, (20, 20, 20, 200))
# Orderings that the true values are taken from.
MANY = 20_000


def draw_means(generator: np.random.Generator, settings: int) -> Values:
    """Draw what methods need in settings: their own part, that of the setting, and that of both together.

    Args:
        generator: Source of randomness.
        settings: How many.

    Returns:
        Mean samples, `[settings, methods]`.
    """
    own = np.linspace(-0.4, 0.4, METHODS)
    both = generator.normal(0, 0.3, (settings, METHODS))
    means: Values = 30 * np.exp(generator.normal(0, 0.6, (settings, 1)) + own + both)
    return means


def over_orderings(orderings: tuple[int, ...], leaderboards: int) -> list[float]:
    """Draw leaderboards of the same settings, and count how often their intervals hold what very long ones have.

    Args:
        orderings: How many each setting has.
        leaderboards: How many leaderboards to draw.

    Returns:
        Shares of the intervals of interquartile means that hold, and of those of probabilities of improvement.
    """
    generator = np.random.default_rng(3)
    means = [tuple(each) for each in draw_means(generator, len(orderings)).tolist()]
    long = [draw(generator, each, MANY) for each in means]
    once = [np.ones((1, each.shape[1])) for each in long]
    middle, _ = relative_interquartile_means(long, once)
    true = np.mean([_improvement(each, ones)[0] for each, ones in zip(long, once, strict=True)], axis=0)
    resamples = [bootstrap_counts(count, stratum) for stratum, count in enumerate(orderings)]
    held = np.zeros(2)
    for _ in range(leaderboards):
        values = [draw(generator, each, count) for each, count in zip(means, orderings, strict=True)]
        low, high = relative_interquartile_means(values, resamples)[1]
        drawn = [_improvement(each, counts) for each, counts in zip(values, resamples, strict=True)]
        least, most = percentile_interval(np.mean(drawn, axis=0))
        held += ((low <= middle) & (middle <= high)).mean(), ((least <= true) & (true <= most)).mean()
    return list(held / leaderboards)


def _improvement(values: Values, counts: Values) -> Values:
    first, second = np.triu_indices(METHODS, 1)
    return probabilities_of_improvement(values, counts)[:, first, second]


def over_data_sets(data_sets: int, leaderboards: int) -> float:
    """Draw leaderboards of other data sets each, and count how often the jackknife's interval holds the stability.

    Args:
        data_sets: How many each leaderboard has.
        leaderboards: How many to draw.
    """
    generator = np.random.default_rng(4)
    true = _stability(draw_means(generator, 2_000))["stability"]
    held = 0
    for _ in range(leaderboards):
        low, high = _stability(draw_means(generator, data_sets))["interval"]
        held += low <= true <= high
    return held / leaderboards


def _stability(means: Values) -> dict[str, Any]:
    return describe_stability("data set", [Experiment(each, 0, unit) for unit, each in enumerate(means)])


def main(leaderboards: int = 1_000) -> None:
    """Print the shares of 95 % intervals that hold.

    Args:
        leaderboards: Leaderboards that are drawn for every line.
    """
    for orderings in ORDERINGS:
        middle, improvement = over_orderings(orderings, leaderboards)
        shares = f"interquartile mean {middle:.1%}, probability of improvement {improvement:.1%}"
        print(f"settings of {', '.join(map(str, orderings))} orderings: {shares}", flush=True)
    for data_sets in (3, 5, 10):
        print(f"{data_sets} data sets: stability {over_data_sets(data_sets, leaderboards):.1%}", flush=True)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

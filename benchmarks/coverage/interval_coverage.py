"""How often the interval of the relative improvement holds the true one."""

from itertools import product

import numpy as np

from headstart.benchmarks.coverage.frame import (
    MANY,
    Shares,
    Values,
    holds,
    print_table,
    samples_to_criterion,
    simulate,
)
from headstart.metrics.sample_efficiency.scores import relative_interval

ORDERINGS, BASELINE_SAMPLES, SPREAD = 20, 60, 0.4
RATIOS = (1 / 3, 4 / 7, 1, 7 / 4, 3)
LIMITS = (float("inf"), 250)


def coverage(ratio: float, correlation: float, limit: float, comparisons: int) -> Shares:
    """Return how often the interval holds the true improvement.

    Args:
        ratio: Samples that the custom method needs over those of the baseline.
        correlation: Of the two methods' logarithms over orderings; with 0 the noise is not paired.
        limit: The sample limit, at which samples to criterion are cut.
        comparisons: Number of comparisons.
    """
    means = (BASELINE_SAMPLES, ratio * BASELINE_SAMPLES)

    def sample(generator: np.random.Generator, orderings: int) -> Values:
        return np.minimum(samples_to_criterion(generator, means, orderings, SPREAD, correlation), limit)

    baseline, custom = sample(np.random.default_rng(1), 5 * MANY).mean(1)
    truth = 1 - custom / baseline
    return simulate(
        lambda generator: {"Fieller's theorem": holds(relative_interval(*sample(generator, ORDERINGS)), truth)},
        comparisons,
    )


def main(comparisons: int = 20_000) -> None:
    """Print the coverage at a nominal 95 %.

    Args:
        comparisons: Comparisons in every line.
    """
    cases = product(LIMITS, (0, 0.8), RATIOS)
    print_table(
        (f"ratio {ratio:.2f}, correlation {rho}, limit {limit}", coverage(ratio, rho, limit, comparisons))
        for limit, rho, ratio in cases
    )

"""How often the interval of the relative improvement holds the true one."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from headstart.benchmarks.coverage.frame import (
    FEWEST_SAMPLES,
    MANY,
    Shares,
    Values,
    holds,
    print_table,
    samples_to_criterion,
    simulate,
)
from headstart.metrics.sample_efficiency.scores import relative_interval, t_interval

ORDERINGS, BASELINE_SAMPLES, SPREAD = 20, 60, 0.4
RATIOS = (1 / 3, 4 / 7, 1, 7 / 4, 3)
LIMITS = (float("inf"), 250)
FAR_LIMIT = 500
# Shares of the orderings at the floor, and of those beyond the limit.
PILED_UP = ((0.0, 0.0), (0.5, 0.05), (0.7, 0.1), (0.8, 0.2), (0.9, 0.4))


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


def piled_up(orderings: int, floored: float, censored: float, comparisons: int) -> Shares:
    """Return how often intervals hold where samples to criterion pile up at the floor or beyond the limit.

    Args:
        orderings: Number of orderings.
        floored: Share of the orderings in which the custom method needs the fewest samples. The others need more, by an
            exponential number.
        censored: Share of the orderings in which the baseline is censored; in the others it is log-normal.
        comparisons: Number of comparisons.
    """

    def sample(generator: np.random.Generator, count: int) -> Values:
        own = generator.exponential(BASELINE_SAMPLES / 4, count) * (generator.random(count) >= floored)
        baseline = BASELINE_SAMPLES * np.exp(SPREAD * generator.standard_normal(count))
        baseline[generator.random(count) < censored] = np.inf
        return FEWEST_SAMPLES + np.minimum(np.ceil([baseline, own]), FAR_LIMIT)

    baseline, custom = sample(np.random.default_rng(1), 5 * MANY).mean(1)

    def trial(generator: np.random.Generator) -> dict[str, ArrayLike]:
        values = sample(generator, orderings)
        relative = relative_interval(*values)
        return {
            "t, custom": holds(t_interval(values[1]), custom),
            "t, baseline": holds(t_interval(values[0]), baseline),
            "Fieller's theorem": holds(relative, 1 - custom / baseline),
            "unbounded": np.isinf(relative[0]),
        }

    return simulate(trial, comparisons)


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
    print_table(
        (
            f"{orderings} orderings, {floored:.0%} at the floor, {censored:.0%} censored",
            piled_up(orderings, floored, censored, comparisons),
        )
        for orderings, (floored, censored) in product((5, 10, 20, 50, 100), PILED_UP)
    )

"""How often the interval of the relative improvement holds the true one."""

from __future__ import annotations

from itertools import product

import jsonargparse
import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.scores import relative_interval, t_interval

ORDERINGS = 20
BASELINE_SAMPLES, SPREAD, FEWEST = 60, 0.4, 10
RATIOS = (1 / 3, 4 / 7, 1, 7 / 4, 3)
LIMITS = (float("inf"), 250)


def coverage(ratio: float, correlation: float, limit: float, comparisons: int, *, fixed: bool = False) -> float:
    """Draw comparisons whose true improvement is known, and count the intervals that hold it.

    Samples to criterion are log-normal, whole numbers of at least `FEWEST`, cut at the limit.

    Args:
        ratio: Samples that the custom method needs over those of the baseline.
        correlation: Of the two methods' logarithms over orderings; 0 is noise that is not paired.
        limit: The sample limit.
        comparisons: How many to draw.
        fixed: Take the t interval of the difference over the baseline's mean, as if that were known.

    Returns:
        The share that holds it.
    """
    generator = np.random.default_rng(0)
    mean_baseline, mean_custom = draw(generator, ratio, correlation, limit, 1_000_000).mean(1)
    truth = 1 - mean_custom / mean_baseline
    held = 0
    for baseline, custom in (draw(generator, ratio, correlation, limit, ORDERINGS) for _ in range(comparisons)):
        if fixed:
            low, high = (end / baseline.mean() for end in t_interval(baseline - custom))
        else:
            low, high = relative_interval(baseline, custom)
        held += bool(low <= truth <= high)
    return held / comparisons


def draw(
    generator: np.random.Generator, ratio: float, correlation: float, limit: float, orderings: int
) -> NDArray[np.float64]:
    """Draw samples to criterion of the baseline and of a custom method.

    Args:
        generator: Source of randomness.
        ratio: As for `coverage`.
        correlation: As for `coverage`.
        limit: The sample limit.
        orderings: How many.

    Returns:
        `[2, orderings]`.
    """
    logarithms = generator.standard_normal((2, orderings))
    logarithms[1] = correlation * logarithms[0] + (1 - correlation**2) ** 0.5 * logarithms[1]
    samples: NDArray[np.float64] = np.array([[BASELINE_SAMPLES], [ratio * BASELINE_SAMPLES]]) * np.exp(
        SPREAD * logarithms
    )
    np.minimum(np.ceil(samples) + FEWEST - 1, limit, out=samples)
    return samples


def main(comparisons: int = 20_000) -> None:
    """Print the coverage of both intervals at a nominal 95 %.

    Args:
        comparisons: Comparisons that are drawn for every line.
    """
    print("ratio  correlation  limit  baseline's mean fixed  Fieller's theorem")
    for limit, correlation, ratio in product(LIMITS, (0, 0.8), RATIOS):
        fixed, ours = (coverage(ratio, correlation, limit, comparisons, fixed=kind) for kind in (True, False))
        print(f"{ratio:5.2f}  {correlation:11}  {limit:5}  {fixed:21.1%}  {ours:17.1%}", flush=True)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

"""The frame of coverage benchmarks: simulated samples, and how often intervals hold the truth or tests reject.

A benchmark declares a population and a trial. A trial takes a sample of the population and returns whether each
interval holds the truth or each test rejects. The frame repeats the trial and prints the shares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]
Shares = dict[str, float]
Trial = Callable[[np.random.Generator], Mapping[str, ArrayLike]]
# Sample size from which the true values of a population are computed.
MANY = 200_000
FEWEST_SAMPLES = 10


def simulate(trial: Trial, trials: int, seed: int | np.random.Generator = 0) -> Shares:
    """Repeat a trial, and return the mean of each of its outcomes: the share of intervals that hold, for instance.

    Args:
        trial: Samples by a generator, and returns outcomes by name, each a number or an array of numbers.
        trials: Number of repetitions.
        seed: Seed of the generator, or a generator that continues.
    """
    generator = np.random.default_rng(seed)
    outcomes = [trial(generator) for _ in range(trials)]
    return {name: float(np.mean([outcome[name] for outcome in outcomes])) for name in outcomes[0]}


def holds(interval: Sequence[ArrayLike] | Values, truth: ArrayLike) -> NDArray[np.bool_]:
    """Return whether an interval, the lower and the upper end, holds the true value."""
    low, high = np.asarray(interval)
    return np.asarray((low <= truth) & (truth <= high))


def print_table(cases: Iterable[tuple[str, Shares]]) -> dict[str, Shares]:
    """Print a line for each case as soon as it is simulated, and a header where the columns change.

    Args:
        cases: Names of cases, and their shares.

    Returns:
        The shares, by case.
    """
    columns: list[str] = []
    found = {}
    for case, shares in cases:
        found[case] = shares
        if columns != list(shares):
            columns = list(shares)
            print(f"{'':48}{'  '.join(columns)}")
        cells = "  ".join(f"{share:{len(name)}.1%}" for name, share in shares.items())
        print(f"{case:48}{cells}", flush=True)
    return found


def samples_to_criterion(
    generator: np.random.Generator,
    means: Sequence[float],
    orderings: int,
    spread: float = 0.35,
    correlation: float = 0.6,
) -> Values:
    """Sample samples to criterion: log-normal whole numbers that move together over orderings.

    Args:
        generator: Source of randomness.
        means: Mean of each method, before `FEWEST_SAMPLES` are added.
        orderings: Number of orderings.
        spread: Standard deviation of the logarithms.
        correlation: Of the logarithms of two methods; with 0 the noise is not paired.

    Returns:
        `[methods, orderings]`.
    """
    own = generator.standard_normal((len(means), orderings))
    logarithms = correlation**0.5 * generator.standard_normal(orderings) + (1 - correlation) ** 0.5 * own
    samples: Values = np.array(means)[:, None] * np.exp(spread * logarithms - spread**2 / 2)
    return np.ceil(samples) + FEWEST_SAMPLES - 1

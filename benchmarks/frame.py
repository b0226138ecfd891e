"""What benchmarks share: functions timed side by side, processes with their memory, and simulated samples."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROOT = Path(__file__).parents[1]
SHARED = Path("../shared")
Values = NDArray[np.float64]
Shares = dict[str, float]
Trial = Callable[[np.random.Generator], Mapping[str, ArrayLike]]
# Sample size from which the true values of a population are computed.
MANY = 200_000
FEWEST_SAMPLES = 10
# Runs a command and prints its largest resident memory in KB. Linux counts the memory of the process that starts
# another as that of the other, too, so that a small one starts it.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a call by a clock."""
    start = clock()
    function()
    return clock() - start


def compare(
    functions: Mapping[str, Callable[[], object]], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Time functions side by side; return the median time of each over that of the first.

    They take turns, so that other work on the machine affects all alike.

    Args:
        functions: The functions, by name.
        repeats: How often each is called.
        clock: Returns seconds; `time.process_time` ignores other work on the machine.

    Returns:
        Ratios by name.
    """
    rounds = [{name: timed(function, clock) for name, function in functions.items()} for _ in range(repeats)]
    medians = {name: statistics.median(times[name] for times in rounds) for name in functions}
    first = next(iter(medians.values()))
    return {name: median / first for name, median in medians.items()}


def run(*command: str, cache: str, **variables: str) -> str:
    """Run Python in the root of the repository without its output; return its wall time and largest resident memory.

    Args:
        command: The script and its arguments.
        cache: Folder of its cache.
        variables: Further variables of its environment.
    """
    arguments = [sys.executable, "-c", MEASURE, sys.executable, *command]
    environment = {**os.environ, "HEADSTART_CACHE": cache, **variables}
    start = time.perf_counter()
    peak = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    return f"{time.perf_counter() - start:.0f} s in {int(peak) / 1024:.0f} MB"


def simulate(trial: Trial, trials: int, seed: int = 0) -> Shares:
    """Repeat a trial, and return the mean of each of its outcomes: the share of intervals that hold, for instance.

    Args:
        trial: Samples by a generator, and returns outcomes by name, each a number or an array of numbers.
        trials: Number of repetitions.
        seed: Seed of the generator.
    """
    generator = np.random.default_rng(seed)
    outcomes = [trial(generator) for _ in range(trials)]
    return {name: float(np.mean([outcome[name] for outcome in outcomes])) for name in outcomes[0]}


def covers(interval: Sequence[ArrayLike] | Values, truth: ArrayLike) -> NDArray[np.bool_]:
    """Return whether an interval, given by its lower and upper end, contains the true value."""
    low, high = np.asarray(interval)
    return np.asarray((low <= truth) & (truth <= high))


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
    noise = generator.standard_normal((len(means), orderings))
    logarithms = correlation**0.5 * generator.standard_normal(orderings) + (1 - correlation) ** 0.5 * noise
    samples: Values = np.array(means)[:, None] * np.exp(spread * logarithms - spread**2 / 2)
    return np.ceil(samples) + FEWEST_SAMPLES - 1

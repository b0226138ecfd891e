"""The frame of benchmarks: calls and commands, timed side by side in one run, and the lines that are printed."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PHOTOS = "../shared/data/cats_and_dogs"
WEIGHTS = "../shared/weights/mobilenet_v2_imagenet.safetensors"
# 1,000 validation samples with 1,280 features; no accuracy above 1 exists, so that every evaluation takes place.
EMBEDDED = [
    "--config=configs/demo.yaml",
    "--trainer.logger=false",
    "--data.photos.validation_size=1000",
    "--data.max_samples=250",
    "--criterion.threshold=1.0",
    "--results.overwrite=true",
]


@dataclass(frozen=True)
class Run:
    """Cost of a process: wall time, start-up included, processor time, and the largest resident memory in MB."""

    seconds: float
    processor_seconds: float
    peak_mb: float

    def __str__(self) -> str:
        """Return wall time and memory."""
        return f"{self.seconds:.2f} s in {self.peak_mb:.0f} MB"


def timed(function: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[float, T]:
    """Return the seconds of a call by a clock, and its result."""
    start = clock()
    result = function()
    return clock() - start, result


def compare(
    functions: Mapping[str, Callable[[], object]],
    reference: str,
    repeats: int = 3,
    summary: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Time functions side by side, and print the time of each with its ratio to that of the reference.

    They take turns, so that other work on the machine affects all alike.

    Args:
        functions: The functions, by name.
        reference: Name of the function that the others are compared with.
        repeats: How often each is called.
        summary: Reduces the times of a function to one.
        clock: Returns seconds; `time.process_time` ignores other work on the machine.

    Returns:
        Seconds by name.
    """
    rounds = [{name: timed(function, clock)[0] for name, function in functions.items()} for _ in range(repeats)]
    seconds = {name: summary([times[name] for times in rounds]) for name in functions}
    for name, each in seconds.items():
        print(f"{name}: {each:.3g} s, {each / seconds[reference]:.3g} times {reference}", flush=True)
    return seconds


def ratios(seconds: Mapping[str, float], reference: str) -> dict[str, float]:
    """Return the times of functions over that of the reference, by name.

    Args:
        seconds: The times.
        reference: Name of the function that the others are compared with.
    """
    return {name: each / seconds[reference] for name, each in seconds.items()}


def peak_mib(function: Callable[[], T]) -> tuple[float, T]:
    """Return the peak memory that Python and NumPy allocate in a call, in MiB, and its result."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20, result


def processor_time_of_commands() -> float:
    """Return the processor seconds of all processes that this one has started and waited for: a clock of `run`."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def overlapping_classes(
    generator: np.random.Generator,
    samples: int,
    features: int,
    classes: int,
    decay: float = 0.5,
    apart: float = 1.0,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return features `[samples, features]` whose spectrum falls off as a network's does, and labels that overlap."""
    labels = generator.permutation(np.arange(samples) % classes)
    rows = generator.standard_normal((samples, features))
    rows += apart * generator.standard_normal((classes, features))[labels]
    return rows * np.arange(1, features + 1) ** -decay, labels


def train(folder: Path, *options: str) -> Run:
    """Run train.py with its options, with its run and cache in a folder; all traces are measured."""
    options = *options, f"--trainer.default_root_dir={folder / 'run'}", "--results.recompute=true"
    return run("train.py", *options, cache=folder / "cache")


def run(*command: str, cache: Path | None = None, **variables: str) -> Run:
    """Run Python in the root of the repository as a process of its own, without its output.

    Args:
        command: The script and its arguments.
        cache: Folder of its cache.
        variables: Further variables of its environment.
    """
    arguments = [sys.executable, *command]
    environment = {**os.environ, **variables, **({"HEADSTART_CACHE": str(cache)} if cache else {})}
    start = time.perf_counter()
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start

    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

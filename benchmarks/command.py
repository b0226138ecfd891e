"""What is measured: a call in this process, and a command as a process of its own, with its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
ROOT = Path(__file__).parent.parent
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
    """What a process took: wall time, start-up included, and the largest resident memory in MB."""

    seconds: float
    peak_mb: float


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Give the seconds of a call, and what it returns."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def overlapping_classes(
    generator: np.random.Generator, samples: int, features: int, classes: int, decay: float = 0.5
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Give features `[samples, features]` whose spectrum falls off as a network's does, and labels that overlap."""
    labels = generator.permutation(np.arange(samples) % classes)
    rows = generator.standard_normal((samples, features)) + generator.standard_normal((classes, features))[labels]
    return rows * np.arange(1, features + 1) ** -decay, labels


def train(folder: Path, *options: str) -> Run:
    """Run train.py with its options, with the run and a cache of its own under a folder; all traces are measured."""
    options = *options, f"--trainer.default_root_dir={folder / 'run'}", "--results.recompute=true"
    return run("train.py", *options, cache=folder / "cache")


def run(entry: str, *options: str, cache: Path, **variables: str) -> Run:
    """Run an entry in the root of the repository as a process of its own, without its output.

    Args:
        entry: The script.
        options: Its arguments.
        cache: Folder of its cache.
        variables: Further variables of its environment.
    """
    command = [sys.executable, entry, *options]
    environment = {**os.environ, "HEADSTART_CACHE": str(cache), **variables}
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(seconds, usage.ru_maxrss / 1024)

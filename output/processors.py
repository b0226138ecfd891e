"""The processors and GPUs that a command may use."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The kernel writes the processor time that a container may use here: microseconds of each period, or max.
QUOTA = Path("/sys/fs/cgroup/cpu.max")

# NVIDIA's driver has a folder for every GPU here.
GPUS = Path("/proc/driver/nvidia/gpus")

_allowed: list[int] = []


@contextmanager
def processors(count: int) -> Iterator[None]:
    """Use no more than this many processors within the context."""
    _allowed.append(count)
    try:
        yield
    finally:
        _allowed.pop()


def count_processors() -> int:
    """Count the processors that this process may use, by its affinity, its container's quota and its command."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        time, period = QUOTA.read_text().split()
        count = min(count, max(1, math.ceil(int(time) / int(period))))
    return min([count, *_allowed])


def list_gpus() -> list[str]:
    """Name the NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; found without torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name.strip()]
    return [str(index) for index, _ in enumerate(GPUS.glob("*"))]

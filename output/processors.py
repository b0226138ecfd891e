"""The CPUs, GPUs and memory that a command may use."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headstart.output.errors import UserError

# The CPU limit of a container: CPU time per period, or `max`; and the period. Both are in microseconds.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
# The memory limit of a container: bytes, or `max`.
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")

# NVIDIA's driver creates a subfolder for every GPU here.
GPUS = Path("/proc/driver/nvidia/gpus")

_limits: list[int] = []


@contextmanager
def limit_processors(count: int) -> Iterator[None]:
    """Limit the result of `count_processors` in this context."""
    _limits.append(count)
    try:
        yield
    finally:
        _limits.pop()


def count_processors() -> int:
    """Return the least of this process's CPU affinity, its container's CPU limit and `limit_processors`."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text().split()
        count = min(count, max(1, math.ceil(int(quota) / int(period))))
    return min([count, *_limits])


def list_gpus() -> list[str]:
    """Return the NVIDIA GPUs that this process may use, named as in CUDA_VISIBLE_DEVICES, without importing torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name.strip()]
    return [str(index) for index, _ in enumerate(GPUS.glob("*"))]


def count_memory() -> float:
    """Return the bytes of memory that this process may use on its machine or in its container; infinite if unknown."""
    limits = [math.inf]
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        limits.append(int(MEMORY_LIMIT.read_text()))
    return min(limits)


def require_memory(option: str, what: str, needed: float) -> None:
    """Check that something fits into the memory of this machine or container.

    Args:
        option: The option whose value requires the memory.
        what: What needs the memory, in the plural.
        needed: Bytes that it needs.

    Raises:
        UserError: It does not fit.
    """
    available = count_memory()
    if needed > available:
        raise UserError(
            f"{option}: {what} need {needed / 1e9:,.0f} GB of memory, and this machine has {available / 1e9:,.0f} GB; "
            "give fewer"
        )

"""The processors, GPUs and memory that a command may use."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headstart.output.errors import UserError

# The kernel writes the processor time that a container may use here: microseconds of each period, or max.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
# It writes the memory that a container may use here: bytes, or max.
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")

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


def count_memory() -> float:
    """Return the bytes of memory that this process may use, of its machine or container; infinite where unknown."""
    limits = [math.inf]
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        limits.append(int(MEMORY_LIMIT.read_text()))
    return min(limits)


def require_memory(option: str, what: str, needed: float) -> None:
    """Check that something fits into the memory of this machine or container.

    Args:
        option: The option that asks for it.
        what: What it is.
        needed: Its bytes.

    Raises:
        UserError: It does not fit.
    """
    available = count_memory()
    if needed > available:
        raise UserError(
            f"{option}: {what} need {needed / 1e9:,.0f} GB of memory, and this machine has {available / 1e9:,.0f} GB; "
            "give fewer"
        )

"""The processors that a command may use, and how its threads wait for each other on them."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

# Where the kernel tells of the processor time that a container may use: microseconds of each period, or max.
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_processors() -> int:
    """Count the processors that this process may use, by its affinity and the quota of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        time, period = QUOTA.read_text().split()
        count = min(count, max(1, math.ceil(int(time) / int(period))))
    return count


def share_processors() -> None:
    """Let threads that wait for others sleep, unless the user decided; to be called before torch is imported.

    OpenMP's threads otherwise keep their processors busy while they wait for one that other work has displaced, and
    with work beside them most of the time is spent so.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

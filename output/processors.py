"""The processors that a command may use."""

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

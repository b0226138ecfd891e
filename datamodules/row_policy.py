"""In what way and by what means rows are computed; named without torch."""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any, Literal

Precision = Literal["float32", "bfloat16"]

# Pixels of one pass through a network. On a processor, activations of larger passes exceed the size above which the
# allocator hands memory back to the system, and page faults then take half of the time.
PASS_PIXELS = {"cpu": 4 * 224**2}
PASS_PIXELS_ELSEWHERE = 256 * 224**2
# Pixels that a process decodes at once, 2.4 MB.
BATCH_PIXELS = 16 * 224**2
# Batches that a process decodes ahead, and where decoded ones wait.
AHEAD = 4
SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Policy:
    """In what ways the rows of the same pictures may differ; rows of one policy are never taken for another's.

    Attributes:
        precision: Arithmetic of the network.
        folded: Whether every batch norm is folded into the convolution before it, for speed. The network then has no
            layers left to take embeddings at: its rows are what enters its classifier.
        unreadable: What becomes of a picture that cannot be decoded: it is refused, or has the row of a black one and
            is remarked upon.
        device: Where the network runs, `auto` for a GPU where there is one. Rows depend on its kind.
        thumbnails: Whether a picture's thumbnail follows what the network makes of it in its row.
    """

    precision: Precision = "float32"
    folded: bool = False
    unreadable: Literal["refuse", "remark"] = "refuse"
    device: str = "auto"
    thumbnails: bool = False

    def identity(self, side: int) -> dict[str, Any]:
        """Give what rows depend on, as JSON values.

        Args:
            side: Side of the prepared pictures in pixels.

        Returns:
            All that is said here, the device by its kind, and how many pictures go through the network at once.
        """
        kind = device_kind(self.device)
        return {**asdict(self), "device": kind, "pass": pass_size(side, kind)}


@dataclass(frozen=True)
class Means:
    """By what means rows are computed and kept, which is nothing that they depend on.

    Attributes:
        cache: The cache folder.
        title: What the progress says.
        workers: Processes that decode; None for one per processor that this process may use.
        only_stored: Whether nothing is to be computed.
        before: Pictures that were computed before, of which the progress tells, too.
        after: Pictures that are still to be computed afterwards.
        check_widths: Refuses columns of the taps, as they are found before a picture goes through the network.
    """

    cache: Path
    title: str
    workers: int | None = None
    only_stored: bool = False
    before: int = 0
    after: int = 0
    check_widths: Callable[[Sequence[int]], None] | None = None


class NotStoredError(Exception):
    """Rows are missing that are not to be computed."""


def pass_size(side: int, kind: str) -> int:
    """Choose how many pictures go through a network at once.

    Args:
        side: Side of the pictures in pixels.
        kind: Kind of the device that the network runs on.

    Returns:
        A number of pictures, 1 or more.
    """
    return max(1, PASS_PIXELS.get(kind, PASS_PIXELS_ELSEWHERE) // side**2)


def batch_size(side: int) -> int:
    """Choose how many pictures a process decodes at once: few, because they wait in shared memory, which is scarce.

    Args:
        side: Side of the pictures in pixels.

    Returns:
        A number of pictures, from 1 to 64.
    """
    return min(64, max(1, BATCH_PIXELS // side**2))


def share_memory(workers: int, batch: int, held: int) -> tuple[int, int]:
    """Choose how many processes decode and how far ahead, so that half of the free shared memory holds what waits.

    Args:
        workers: Processes that are wanted.
        batch: Bytes of a batch.
        held: Batches that whoever takes them holds at once.

    Returns:
        Processes, 0 where there is room for none beside this one, and batches that each decodes ahead.
    """
    try:
        room = max(0, shutil.disk_usage(SHARED_MEMORY).free // 2 // batch - held)
    except OSError:  # systems without that folder share memory in another way
        return workers, AHEAD
    workers = min(workers, room)
    return workers, min(AHEAD, room // workers) if workers else AHEAD


def device_kind(device: str) -> str:
    """Tell the kind of a device.

    Args:
        device: Its name, such as `cuda:1`; `auto` for a GPU where torch can use one, else the processor.

    Returns:
        The kind, such as `cuda`.
    """
    if device != "auto":
        return device.partition(":")[0]
    return "cuda" if _has_gpu() else "cpu"


def _has_gpu() -> bool:
    """Tell what `torch.cuda.is_available` does, without the seconds of torch's import where that can be."""
    if "torch" not in sys.modules:
        built = run_path(str(Path(find_spec("torch").origin).with_name("version.py")))  # type: ignore[union-attr, arg-type]
        if not built.get("hip"):
            return built["cuda"] is not None and _count_gpus() > 0
    import torch

    return torch.cuda.is_available()


def _count_gpus() -> int:
    """Ask NVIDIA's driver."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if driver.cuInit(0) == driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0

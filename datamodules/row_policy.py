"""Settings of rows besides network and picture, and the resources with which they are computed; without torch."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from headstart.datamodules.row_check import RowCheck
    from headstart.engines.options import EngineOptions

Precision = Literal["float32", "bfloat16"]

# Pixels of one pass through a network. On a processor, activations of larger passes exceed the size above which the
# allocator hands memory back to the system, and page faults then take half of the time.
PASS_PIXELS = {"cpu": 4 * 224**2}
PASS_PIXELS_ELSEWHERE = 256 * 224**2

# Pixels of a piece of the missing rows, which one process computes together: some seconds of work. More pictures than
# MOST_PICTURES are not listed at once, and files of more bytes take too long to decode.
PIECE_PIXELS = {"cpu": 1024 * 224**2}
PIECE_PIXELS_ELSEWHERE = 16384 * 224**2
MOST_PICTURES = 16384
# Rows that are computed before they are written, at least.
CHUNK = 64
PIECE_BYTES = 2**30


@dataclass(frozen=True)
class Policy:
    """Settings that change the rows of a picture; rows of one policy are never used for another.

    Attributes:
        precision: Arithmetic of the network.
        folded: Whether every batch norm is folded into the convolution before it, for speed. The network then has no
            layers left for embeddings: its rows are the inputs of its classifier.
        unreadable: How to handle a picture that cannot be decoded. `refuse` raises an error. `remark` computes the row
            of a black picture and stores a remark.
        device: Where the network runs, `auto` for a GPU where there is one. Rows depend on its kind.
        thumbnails: Whether the picture's thumbnail follows the network's output in its row.
    """

    precision: Precision = "float32"
    folded: bool = False
    unreadable: Literal["refuse", "remark"] = "refuse"
    device: str = "auto"
    thumbnails: bool = False

    def identity(self, side: int) -> dict[str, Any]:
        """Return what rows depend on, as JSON values.

        Args:
            side: Side of the prepared pictures in pixels.

        Returns:
            All settings, the device by its kind, and the number of pictures in a pass through the network.
        """
        kind = device_kind(self.device)
        return {**asdict(self), "device": kind, "pass": pass_size(side, kind)}


@dataclass(frozen=True)
class Resources:
    """Resources with which rows are computed and stored; rows do not depend on them.

    Attributes:
        cache: The cache folder.
        title: Title of the progress.
        workers: Processes that decode; None for one per processor that this process may use.
        only_stored: Whether missing rows raise NotStoredError instead of being computed.
        before: Pictures computed earlier, which the progress counts too.
        after: Pictures to compute later, which the progress counts too.
        check: Compares stored rows with rows that are computed again, in place of returning them all.
        engines: Where missing rows are computed; None for this process.
    """

    cache: Path
    title: str
    workers: int | None = None
    only_stored: bool = False
    before: int = 0
    after: int = 0
    check: RowCheck | None = None
    engines: EngineOptions | None = None


class NotStoredError(Exception):
    """Rows are missing and must not be computed."""


def pass_size(side: int, kind: str) -> int:
    """Return how many pictures go through a network together.

    Args:
        side: Side of the pictures in pixels.
        kind: Kind of the device that the network runs on.

    Returns:
        A number of pictures, 1 or more.
    """
    return max(1, PASS_PIXELS.get(kind, PASS_PIXELS_ELSEWHERE) // side**2)


def piece_size(side: int, kind: str) -> int:
    """Return how many pictures are computed together, in whole passes; arguments as for `pass_size`."""
    size = pass_size(side, kind)
    most = min(MOST_PICTURES, PIECE_PIXELS.get(kind, PIECE_PIXELS_ELSEWHERE) // side**2)
    return max(1, most // size) * size


def device_kind(device: str) -> str:
    """Return the kind of a device, such as `cuda`.

    Args:
        device: Its name, such as `cuda:1`; `auto` for a GPU where torch can use one, else the processor.
    """
    if device != "auto":
        return device.partition(":")[0]
    return "cuda" if _has_gpu() else "cpu"


def _has_gpu() -> bool:
    """Whether `torch.cuda.is_available()`, without the seconds of torch's import where possible."""
    if "torch" not in sys.modules:
        built = run_path(str(Path(find_spec("torch").origin).with_name("version.py")))  # type: ignore[union-attr, arg-type]
        if not built.get("hip"):
            return built["cuda"] is not None and _count_gpus() > 0
    import torch

    return torch.cuda.is_available()


def _count_gpus() -> int:
    """Return the number of GPUs that NVIDIA's driver finds."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if driver.cuInit(0) == driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0

"""Requests for rows: the pictures, the network, its settings and resources. Only the device `auto` imports torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.picture_decoding import formats
from headstart.datamodules.photos.pictures import Pictures
from headstart.engines.options import EngineOptions
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError
from headstart.store.feature_table import TABLES, Digests, FeatureTable, StoredRows

if TYPE_CHECKING:
    from pathlib import Path

Precision = Literal["float32", "bfloat16"]

# Pixels of all pictures in one pass through a network. On a CPU, activations of larger passes exceed the size above
# which the allocator returns memory to the system, and page faults then take half of the time.
PASS_PIXELS = {"cpu": 4 * 224**2}
PASS_PIXELS_ELSEWHERE = 256 * 224**2
# Limits of a part of a request: its pictures and the bytes of its rows.
MIN_PICTURES, MAX_PICTURES, PART_BYTES = 64, 4096, 2**26
# A request for all rows has at least this number of parts, unless they would have fewer than `MIN_PICTURES`.
MIN_PARTS = 64


@dataclass(frozen=True)
class NetworkSettings:
    """How a network runs. Rows depend on these settings, so that rows of other settings are never reused.

    Attributes:
        precision: Arithmetic of the network.
        folded: Whether every batch norm is folded into the convolution before it, for speed. Embeddings
            of layers are then not available: the rows are the inputs of the classifier.
        device: Where the network runs, `auto` for a GPU where torch can use one. Rows depend on its kind.
    """

    precision: Precision = "float32"
    folded: bool = False
    device: str = "auto"

    @cached_property
    def kind(self) -> str:
        """Kind of the device, such as `cuda`; only `auto` needs torch."""
        if self.device != "auto":
            return self.device.partition(":")[0]
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def identity(self, side: int) -> dict[str, Any]:
        """Return what rows depend on, as JSON values: also the number of pictures in a pass through the network.

        Args:
            side: Side of the prepared pictures in pixels.
        """
        options = {"precision": self.precision, "folded": self.folded, "device": self.kind}
        return {**options, "pass": pass_size(side, self.kind)}


@dataclass(frozen=True)
class ComputeSettings:
    """The resources that compute rows, and where rows are stored; the rows do not depend on these settings.

    Attributes:
        cache: The cache folder.
        title: Title of the progress bar.
        workers: Processes that decode; None for one per processor that this process may use.
        engines: Where missing rows are computed.
    """

    cache: Path
    title: str
    workers: int | None = None
    engines: EngineOptions = EngineOptions()  # noqa: RUF009 - it is immutable


def pass_size(side: int, kind: str) -> int:
    """Return how many pictures go through a network together.

    Args:
        side: Side of the pictures in pixels.
        kind: Kind of the device that the network runs on.

    Returns:
        A number of pictures, 1 or more.
    """
    return max(1, PASS_PIXELS.get(kind, PASS_PIXELS_ELSEWHERE) // side**2)


@dataclass(frozen=True)
class RowRequest:
    """A request for the rows of pictures.

    Attributes:
        pictures: The pictures.
        preprocessing: How they are prepared.
        settings: How the network runs.
        network: The network; None for the prepared pictures themselves.
        taps: Layers of the embeddings; none for the inputs of the classifier.
        boundary: Module whose inputs are the rows, instead of embeddings; the network ends before it.
    """

    pictures: Pictures
    preprocessing: Preprocessing
    settings: NetworkSettings = NetworkSettings(device="cpu")
    network: NetworkSpec | None = None
    taps: Sequence[Tap] = ()
    boundary: str = ""

    @cached_property
    def key(self) -> Mapping[str, Any]:
        """Everything that all the rows depend on, as JSON values: the key of their table."""
        # These packages decode and scale pictures and run networks. The formats decide which pictures are unreadable.
        versions = {package: version(package) for package in ("torch", "torchvision", "pillow")}
        decoding = {"decoding": self.pictures.decoding, "formats": sorted(formats())}
        return {**self._network_key(), **decoding, **versions}

    def _network_key(self) -> dict[str, Any]:
        preprocessing = self.preprocessing
        if self.network is None:
            names = ("resize", "crop", "interpolation")
            return {name: getattr(preprocessing, name) for name in names}
        return {
            "network": self.network.identity,
            "preprocessing": asdict(preprocessing),
            **({"boundary": self.boundary} if self.boundary else {"taps": [asdict(tap) for tap in self.taps]}),
            "policy": self.settings.identity(preprocessing.crop),
        }

    def table(self, cache: Path) -> FeatureTable:
        """Return the table of the rows."""
        return FeatureTable(cache / TABLES, self.key)

    def cut(self, digests: Digests, missing: NDArray[np.int64], row_bytes: int) -> list[NDArray[np.int64]]:
        """Cut missing rows into parts, whose boundaries are the same in all processes, whichever rows are missing.

        Args:
            digests: Digests of all pictures.
            missing: Indices of the missing ones.
            row_bytes: Bytes of a row.
        """
        wanted = max(MIN_PICTURES, math.ceil(len(digests) / MIN_PARTS))
        size = min(wanted, MAX_PICTURES, max(1, PART_BYTES // row_bytes))
        limits = np.searchsorted(missing, np.arange(size, len(digests), size))
        return [part for part in np.split(missing, limits) if len(part)]

    def part(self, indices: NDArray[np.int64]) -> RowRequest:
        """Return a request for some of the pictures, which is small when it is pickled for another process."""
        pictures = self.pictures.part(indices)
        pictures._known = self.pictures.packed_digests()[indices]
        # The copy of the network has no cached properties, which would be pickled, too.
        network = None if self.network is None else replace(self.network)
        return replace(self, pictures=pictures, network=network)


def require_readable(pictures: Pictures, stored: StoredRows) -> StoredRows:
    """Return the rows if every picture could be decoded; otherwise a UserError names the first that could not."""
    for index, reason in stored.remarks.items():
        raise UserError(f"{pictures.kind} {pictures.names[index]!r} cannot be decoded: {reason}".replace("\n", " "))
    return stored

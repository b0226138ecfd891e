"""Which rows are needed: of which pictures, by which network, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.extraction_progress import Report
from headstart.datamodules.photos.photo_source import Pictures
from headstart.datamodules.row_policy import PIECE_BYTES, Policy, Resources, device_kind, piece_size
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap

if TYPE_CHECKING:
    from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork


@dataclass(frozen=True)
class RowRequest:
    """Rows of pictures.

    Attributes:
        pictures: The pictures.
        preprocessing: How they are prepared.
        policy: Settings that change the rows.
        network: The network; None for the prepared pictures themselves.
        taps: Layers of the embeddings; none for the inputs of the classifier.
        boundary: Module before which the network ends, for the activations that enter it.
    """

    pictures: Pictures
    preprocessing: Preprocessing
    policy: Policy
    network: NetworkSpec | None = None
    taps: Sequence[Tap] = ()
    boundary: str = ""

    @cached_property
    def key(self) -> Mapping[str, Any]:
        """Everything that all the rows depend on, as JSON values: the key of their table."""
        # These packages decode and scale pictures and run networks, so that rows depend on their versions.
        versions = {package: version(package) for package in ("torch", "torchvision", "pillow")}
        return {**self._settings(), "decoding": self.pictures.decoding, **versions}

    def _settings(self) -> dict[str, Any]:
        preprocessing, policy = self.preprocessing, self.policy
        if self.network is None:
            return {
                "resize": preprocessing.resize,
                "crop": preprocessing.crop,
                "interpolation": preprocessing.interpolation,
                "unreadable": policy.unreadable,
                "device": "cpu",  # whichever device they are used on
            }
        return {
            "network": self.network.identity,
            "preprocessing": asdict(preprocessing),
            **({"boundary": self.boundary} if self.boundary else {"taps": [asdict(tap) for tap in self.taps]}),
            "policy": policy.identity(preprocessing.crop),
        }

    @property
    def piece(self) -> int:
        """Pictures of a piece."""
        kind = "cpu" if self.network is None else device_kind(self.policy.device)
        return piece_size(self.preprocessing.crop, kind)

    def cut(self, missing: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Cut pictures into pieces of some seconds of work, by their number and by the bytes of their files.

        Args:
            missing: Indices of the pictures.

        Returns:
            The indices of each piece, in their order.
        """
        ends = np.cumsum(self.pictures.file_sizes(missing))
        pieces, first = [], 0
        while first < len(missing):
            before = ends[first - 1] if first else 0
            by_bytes = int(np.searchsorted(ends, before + PIECE_BYTES, side="right"))
            end = max(first + 1, min(first + self.piece, by_bytes))
            pieces.append(missing[first:end])
            first = end
        return pieces

    def part(self, indices: NDArray[np.int64]) -> RowRequest:
        """Return a request for some of the pictures, which is small when it is pickled for another process."""
        pictures, digests = self.pictures.part(indices), self.pictures.digests()
        pictures.set_digests([digests[index] for index in indices])
        # What the network's copy has computed of itself stays behind.
        network = None if self.network is None else replace(self.network)
        return replace(self, pictures=pictures, network=network)

    def load(self) -> FrozenNetwork | None:
        """Load the network; errors as for `row_computation.load`."""
        # This imports torch, which stored rows do not need.
        from headstart.datamodules.row_computation import load

        return None if self.network is None else load(self.network, self.taps, self.policy, self.boundary)

    def compute(
        self, indices: Sequence[int], resources: Resources, frozen: FrozenNetwork | None, report: Report
    ) -> ComputedRows:
        """Return the source of the rows of some pictures.

        Args:
            indices: Indices of the pictures.
            resources: Decoding processes.
            frozen: The network, loaded.
            report: Receives the progress.
        """
        from headstart.datamodules.row_computation import ComputedRows

        return ComputedRows(self.pictures, indices, self.preprocessing, self.policy, resources, frozen, report)

"""Which rows are needed: of which pictures, by which network, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.extraction_progress import Report
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_policy import CHUNK, PIECE_BYTES, Policy, Resources, device_kind, pass_size, piece_size
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CUSTOM, NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError
from headstart.store.name_index import take
from headstart.store.row_store import first_measured

if TYPE_CHECKING:
    from pathlib import Path

    from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork

# Folders of the cache with tables of rows, and with the widths of embeddings whose output_dim the registry leaves out.
TABLES = "rows"
MEASURED_WIDTHS = "measured_widths"
# Messages of torch's loader, at any moment, on a process that was killed or found no shared memory.
DECODING_ENDED = re.compile(r"DataLoader worker .*(is killed by|exited unexpectedly)|unable to .* shared memory")


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

    def cut(self, missing: NDArray[np.int64], most: int | None = None) -> list[NDArray[np.int64]]:
        """Cut pictures into pieces of some seconds of work, by their number and by the bytes of their files.

        Args:
            missing: Indices of the pictures.
            most: Pictures of a piece, so that each of several processes gets some; whole chunks are cut all the same.

        Returns:
            The indices of each piece, in their order.
        """
        ends = np.cumsum(self.pictures.file_sizes(missing))
        kind = "cpu" if self.network is None else device_kind(self.policy.device)
        unit = max(CHUNK, pass_size(self.preprocessing.crop, kind))
        piece = self.piece if most is None else min(self.piece, -(-most // unit) * unit)
        pieces, first = [], 0
        while first < len(missing):
            before = ends[first - 1] if first else 0
            by_bytes = int(np.searchsorted(ends, before + PIECE_BYTES, side="right"))
            end = max(first + 1, min(first + piece, by_bytes))
            pieces.append(missing[first:end])
            first = end
        return pieces

    def part(self, indices: NDArray[np.int64]) -> RowRequest:
        """Return a request for some of the pictures, which is small when it is pickled for another process."""
        pictures, digests = self.pictures.part(indices), self.pictures.digests()
        pictures.set_digests(take(digests, indices))
        # What the network's copy has computed of itself stays behind.
        network = None if self.network is None else replace(self.network)
        return replace(self, pictures=pictures, network=network)

    def load(self, cache: Path) -> FrozenNetwork | None:
        """Load the network, None without one; check the widths of its rows before a long computation, not after it.

        Args:
            cache: The cache folder.

        Raises:
            UserError: As for `row_computation.load` and `check_widths`.
        """
        if self.network is None:
            return None
        # This imports torch, which stored rows do not need.
        from headstart.datamodules.row_computation import load

        frozen = load(self.network, self.taps, self.policy, self.boundary)
        if frozen.widths is not None:
            self.check_widths(frozen.widths, cache)
        return frozen

    def check_widths(self, widths: Sequence[int], cache: Path) -> None:
        """Check that embeddings without an output_dim are as wide as they were when first measured.

        Measurements are found without weights and library versions: an update that changes a width must be noticed.

        Args:
            widths: Columns of each tap.
            cache: The cache folder.

        Raises:
            UserError: One has another width than before.
        """
        network = self.network
        assert network is not None
        ignored = {"weights"} if network.library == CUSTOM else {"weights", "code"}
        identity = {name: value for name, value in network.identity.items() if name not in ignored}

        # A network without a classifier has no column of the source head, the last tap.
        for tap, width in zip(self.taps, widths, strict=False):
            if tap.strategy is None or tap.width is not None:
                continue
            crop = self.preprocessing.crop
            key = {"network": identity, "crop": crop, "layer": tap.layer, "embedding": tap.strategy}
            first = first_measured(cache / MEASURED_WIDTHS, key, width)
            if width != first:
                raise UserError(
                    f"model {network.name!r}: layer {tap.layer!r} gives {width} columns, and gave {first} when its "
                    f"output_dim, which the registry leaves out, was first measured; name the one that is meant there"
                )

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

    def end(self) -> None:
        """End the processes that decode, when all rows are computed."""
        from headstart.datamodules.decoding import end_decoding

        end_decoding()


@contextmanager
def explain_decoding_errors() -> Iterator[None]:
    """Raise the end of a decoding process as the user's error, which names the option."""
    try:
        yield
    except RuntimeError as error:
        if not DECODING_ENDED.search(str(error)):
            raise
        *_, reason = str(error).strip().splitlines()
        raise UserError(
            f"num_workers: a process that decodes pictures stopped ({reason}); computed rows are kept, so "
            "try again, with fewer processes or more memory"
        ) from error

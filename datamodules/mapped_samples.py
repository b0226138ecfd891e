"""Samples that do not fit into memory; they are read from the disk when they are indexed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.store.gathered_rows import GatheredRows

# Rows of at most this many bytes become one tensor.
MAX_BYTES_IN_MEMORY = 2**30
# Bytes that `MappedSamples.to` reads at once.
BYTES_AT_ONCE = 2**26

Rows = NDArray[Any] | GatheredRows
Convert = Callable[[Tensor], Tensor]


class MappedSamples:
    """Samples in stored rows. Only the samples that are indexed are read into memory.

    Args:
        rows: The rows, `[rows, ...]`.
        convert: Converts rows, `[samples, ...]`, to samples.
        chosen: Indices of the rows that are samples, `[samples]`; all by default.

    Attributes:
        shape: `[samples, ...]`.
        nbytes: Bytes of all samples.
        device: The CPU.
    """

    device = torch.device("cpu")

    def __init__(self, rows: Rows, convert: Convert, chosen: Tensor | None = None) -> None:
        self._rows, self._convert = rows, convert
        self._chosen = torch.arange(len(rows)) if chosen is None else chosen
        first = convert(_read(rows, slice(0, 1)))
        self.shape = torch.Size([len(self), *first.shape[1:]])
        self.nbytes = len(self) * first.numel() * first.element_size()

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._chosen)

    def __getitem__(self, index: Tensor) -> Any:  # noqa: ANN401 - its kind depends on the index
        """Read the samples at some indices, or select the samples in a mask without reading them.

        Args:
            index: Indices of any shape, or a mask, `[samples]`.

        Returns:
            The samples at the indices in memory, `[*indices, ...]`; or MappedSamples of those in the mask.
        """
        if index.dtype == torch.bool:
            return MappedSamples(self._rows, self._convert, self._chosen[index.cpu()])
        # Each row is read once, in the order of the rows on the disk.
        rows, positions = self._chosen[index.cpu()].unique(return_inverse=True)
        return self._convert(_read(self._rows, rows.numpy()))[positions]

    def to(self, device: torch.device) -> Any:  # noqa: ANN401
        """Read all samples into one tensor on a device. On the CPU, return this object unchanged."""
        if device.type == "cpu":
            return self
        step = max(1, BYTES_AT_ONCE * len(self) // self.nbytes)
        return torch.cat([self[part].to(device) for part in torch.arange(len(self)).split(step)])


def samples_of(rows: Rows, convert: Convert) -> Tensor | MappedSamples:
    """Return the samples in stored rows.

    Args:
        rows: The rows, `[rows, ...]`.
        convert: Converts rows, `[samples, ...]`, to samples.

    Returns:
        MappedSamples if the rows have more than `MAX_BYTES_IN_MEMORY` bytes; otherwise a tensor, which may share the
        memory of the rows.
    """
    return MappedSamples(rows, convert) if rows.nbytes > MAX_BYTES_IN_MEMORY else tensor_of(rows, convert)


def tensor_of(rows: Rows, convert: Convert) -> Tensor:
    """Return the samples in stored rows as a tensor of any size; the arguments are as in `samples_of`."""
    return convert(_read(rows, slice(None)))


def _read(rows: Rows, chosen: slice | NDArray[np.int64]) -> Tensor:
    return torch.from_numpy(np.asarray(rows[chosen]))

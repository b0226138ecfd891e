"""The tensors that all methods of a comparison share, compared at the end of a pass."""

import zlib
from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from headstart.modules.method import Start


class SharedTensors:
    """Finds shared tensors that hold other values than at the beginning, by checksums of their bits.

    Args:
        start: What all methods start from.
        others: Other tensors, by their names in messages.
    """

    def __init__(self, start: Start, others: Mapping[str, Tensor]) -> None:
        values = {f"start.{field.name}": getattr(start, field.name) for field in fields(start)} | dict(others)
        self.tensors = {name: [value] for name, value in values.items() if isinstance(value, Tensor)}
        if start.backbone is not None:
            self.tensors["start.backbone"] = [*start.backbone.parameters(), *start.backbone.buffers()]
        self._before = self._checksums()

    def _checksums(self) -> dict[str, list[int]]:
        return {name: [_checksum(tensor) for tensor in part] for name, part in self.tensors.items()}

    def changed(self) -> list[str]:
        """Return the names of the tensors that have changed."""
        return [name for name, sums in self._checksums().items() if sums != self._before[name]]


def _checksum(tensor: Tensor) -> int:
    """Return the CRC-32 of the bits, which a changed value or another order of rows changes."""
    return zlib.crc32(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)

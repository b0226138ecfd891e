"""The tensors that all methods of a comparison share, compared at the end of a pass."""

from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from headstart.modules.method import MethodStart

WORD = torch.int64


class SharedTensors:
    """Finds shared tensors that hold other values than at the beginning, by checksums of their bits.

    Args:
        start: What all methods start from.
        held: Other tensors, by their names in messages.
    """

    def __init__(self, start: MethodStart, held: Mapping[str, Tensor]) -> None:
        values = {f"start.{field.name}": getattr(start, field.name) for field in fields(start)} | dict(held)
        self.tensors = {name: [value] for name, value in values.items() if isinstance(value, Tensor)}
        if start.backbone is not None:
            self.tensors["start.backbone"] = [*start.backbone.parameters(), *start.backbone.buffers()]
        self._before = self._checksums()

    def _checksums(self) -> dict[str, list[int]]:
        return {name: [int(_checksum(tensor)) for tensor in part] for name, part in self.tensors.items()}

    def changed(self) -> list[str]:
        """Return the names of the tensors that have changed."""
        return [name for name, sums in self._checksums().items() if sums != self._before[name]]


def _checksum(tensor: Tensor) -> Tensor:
    """Return a sum of the bits, weighted by row, so that changed values and a changed order of rows change it."""
    # The axes are in the order of memory, so that a row need not be copied.
    axes = sorted(range(1, tensor.dim()), key=tensor.stride, reverse=True)
    rows = tensor.detach().permute(0, *axes).flatten(1) if axes else tensor.detach().reshape(-1, 1)
    size = rows.element_size()
    # Sums of long words are ten times as fast as those of short ones.
    if all(size * count % WORD.itemsize == 0 for count in (rows.shape[1], rows.stride(0), rows.storage_offset())):
        rows = rows.view(WORD)
    else:
        rows = rows.contiguous().view(torch.uint8)
    sums = rows.sum(1)
    return (sums * torch.arange(1, len(sums) + 1, device=sums.device)).sum()

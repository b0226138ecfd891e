"""The tensors that all methods of a comparison share, watched for changes."""

from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from headstart.modules.method import Start

WORD = torch.int64


class SharedTensors:
    """Checks whether shared tensors still hold the same values, and finds who changed them where that is possible.

    Checksums are of the bits, and stay on the device until they are compared.

    Args:
        start: What all methods start from.
        held: Other tensors, by their names in messages.
    """

    def __init__(self, start: Start, held: Mapping[str, Tensor]) -> None:
        values = {f"start.{field.name}": getattr(start, field.name) for field in fields(start)} | dict(held)
        self.tensors = {name: [value] for name, value in values.items() if isinstance(value, Tensor)}
        if start.backbone is not None:
            self.tensors["start.backbone"] = [*start.backbone.parameters(), *start.backbone.buffers()]
        self.device = start.device
        self._before = self._checksums()
        self._recorded: list[tuple[str | None, Tensor]] = []

    def _checksums(self) -> Tensor:
        sums = [torch.stack([_checksum(tensor) for tensor in part]) for part in self.tensors.values()]
        if not sums:
            return torch.zeros(0)
        return torch.stack([values.sum().to(self.device, non_blocking=True) for values in sums])

    def versions(self) -> list[int]:
        """Return a number per tensor that grows where torch knows of a change."""
        return [tensor._version for part in self.tensors.values() for tensor in part]

    def record(self, name: str | None) -> None:
        """Record checksums, which are compared later.

        Args:
            name: The method that ran last; None where that is not known.
        """
        self._recorded.append((name, self._checksums()))

    def changed(self) -> tuple[str | None, list[str]]:
        """Return which method changed which tensors first, as far as that is known; nothing where none has changed."""
        self.record(None)
        for name, sums in self._recorded:
            differing = (sums != self._before).tolist()
            if any(differing):
                return name, [part for part, differs in zip(self.tensors, differing, strict=True) if differs]
        self._recorded.clear()
        return None, []


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

"""The tensors that all methods of a comparison are given, watched for changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from headstart.modules.method import Start

WORD = torch.int64


class SharedTensors:
    """Tells whether tensors still hold what they held, and who changed them where that can be known.

    Checksums are of the bits, and stay on the device until one asks for them.

    Args:
        start: What all methods start from.
        held: Other tensors, by what they are called.
    """

    def __init__(self, start: Start, held: Mapping[str, Tensor]) -> None:
        given = {f"start.{field.name}": getattr(start, field.name) for field in fields(start)}
        single = {name: tensor for name, tensor in {**given, **held}.items() if isinstance(tensor, Tensor)}
        self.tensors = {name: [tensor] for name, tensor in single.items()}
        if start.backbone is not None:
            self.tensors["start.backbone"] = [*start.backbone.parameters(), *start.backbone.buffers()]
        self.device = start.device
        self._before = self._sum()
        self._found: list[tuple[str | None, Tensor]] = []

    def _sum(self) -> Tensor:
        """Add up every part."""
        sums = [torch.stack([_checksum(tensor) for tensor in part]) for part in self.tensors.values()]
        if not sums:
            return torch.zeros(0)
        return torch.stack([each.sum().to(self.device, non_blocking=True) for each in sums])

    def versions(self) -> list[int]:
        """Give a number per tensor that grows where torch knows of a change."""
        return [tensor._version for part in self.tensors.values() for tensor in part]

    def look(self, name: str | None) -> None:
        """Note what they hold, to be compared later.

        Args:
            name: Who had them last; None where that is not known.
        """
        self._found.append((name, self._sum()))

    def changed(self) -> tuple[str | None, list[str]]:
        """Say who changed what first, as far as that is known; nothing where they hold what they held."""
        self.look(None)
        for name, sums in self._found:
            differing = (sums != self._before).tolist()
            if any(differing):
                return name, [part for part, differs in zip(self.tensors, differing, strict=True) if differs]
        self._found.clear()
        return None, []


def _checksum(tensor: Tensor) -> Tensor:
    """Add up bits, row by row and each row by its place, so that neither a value nor the order of rows can change."""
    # In the order in which it lies in memory, so that a row need not be copied.
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

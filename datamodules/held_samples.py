"""Where the samples of a stream are held while they are fed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from headstart.output.printable import say


class ValidationSet:
    """The validation set, in chunks and always in one order.

    Args:
        inputs: `[samples, ...]`.
        labels: `[samples]`.
        chunk: Samples that are predicted at once.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, chunk: int) -> None:
        # The same tensors in every evaluation, so that methods can keep what they compute of them.
        self.chunks = list(zip(inputs.split(chunk), labels.split(chunk), strict=True))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Give inputs and labels of each chunk."""
        return iter(self.chunks)


def hold(device: torch.device, samples: Sequence[Tensor]) -> Sequence[Tensor]:
    """Move samples to where the methods run, or leave them where they are if memory is short there, and say so.

    Args:
        device: Where the methods run.
        samples: Inputs and labels.

    Returns:
        The same, on the device if they fit.
    """
    needed, spare = sum(tensor.nbytes for tensor in samples), _spare_bytes(device)
    if needed <= spare:
        return [tensor.to(device) for tensor in samples]
    say(
        f"{device} can spare {spare / 1e9:.1f} GB of memory for {needed / 1e9:.1f} GB of samples; "
        "they stay in main memory, and every batch is copied"
    )
    return samples


def _spare_bytes(device: torch.device) -> float:
    """Tell how much of a device's memory samples may take: of a GPU half of what is free, the rest is for training."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else math.inf

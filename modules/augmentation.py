"""Random augmentation of batches of photos, from torch's global generator; transforms of torchvision serve as well.

Like these they take photos alone, or photos with their label maps, `(Image, Mask)` of `torchvision.tv_tensors`.
"""

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms.v2 import Transform
from torchvision.tv_tensors import wrap


class Shift(Transform):  # type: ignore[misc]  # torchvision has no types
    """Shifts a batch by whole pixels, all of its photos alike; the borders are reflected.

    Args:
        reach: Most pixels of the shift, in either direction.
    """

    def __init__(self, reach: int = 4) -> None:
        super().__init__()
        self.reach = reach

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Sample how far the batch is shifted, down and to the right."""
        return {"by": torch.randint(-self.reach, self.reach + 1, (2,)).tolist()}

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        """Shift photos, `[samples, 3, height, width]`, or label maps, `[samples, height, width]`."""
        rows, columns = (
            _reflected(side, by, inpt.device) for side, by in zip(inpt.shape[-2:], params["by"], strict=True)
        )
        return _as(inpt, inpt[..., rows, :][..., columns])


def _reflected(side: int, by: int, device: torch.device) -> Tensor:
    positions = (torch.arange(side, device=device) + by).abs()
    return torch.where(positions < side, positions, 2 * (side - 1) - positions)


class MirrorHalf(Transform):  # type: ignore[misc]  # torchvision has no types
    """Mirrors the first half of a batch, whose order is random."""

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        """Mirror photos, `[samples, 3, height, width]`, or label maps, `[samples, height, width]`, left to right."""
        half = len(inpt) // 2
        return _as(inpt, torch.cat([inpt[:half].flip(-1), inpt[half:]]))


def _as(before: Tensor, after: Tensor) -> Tensor:
    """Return a tensor with the type that it had before, photos or label maps."""
    wrapped: Tensor = wrap(after, like=before)
    return wrapped

"""Random augmentation of batches of photos, with torch's global generator.

Like the transforms of torchvision, which can be used as well, these take photos, or photos with their label maps:
`(Image, Mask)` of `torchvision.tv_tensors`.
"""

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms.v2 import Transform
from torchvision.tv_tensors import wrap


class Shift(Transform):  # type: ignore[misc]  # torchvision has no types
    """Shifts all photos of a batch by the same whole number of pixels, with reflection padding.

    Args:
        reach: Largest shift in each direction, in pixels.
    """

    def __init__(self, reach: int = 4) -> None:
        super().__init__()
        self.reach = reach

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Sample the offsets at which rows and columns are read."""
        return {"offsets": torch.randint(-self.reach, self.reach + 1, (2,)).tolist()}

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        """Shift photos, `[samples, 3, height, width]`, or label maps, `[samples, height, width]`."""
        rows, columns = (
            _shifted_indices(size, offset, inpt.device)
            for size, offset in zip(inpt.shape[-2:], params["offsets"], strict=True)
        )
        return _with_type_of(inpt, inpt[..., rows, :][..., columns])


def _shifted_indices(size: int, offset: int, device: torch.device) -> Tensor:
    """Return the indices `offset, offset + 1, ...`, reflected at both ends of an axis as often as needed, `[size]`."""
    period = max(2 * (size - 1), 1)
    indices = (torch.arange(size, device=device) + offset) % period
    return torch.where(indices < size, indices, period - indices)


class MirrorHalf(Transform):  # type: ignore[misc]  # torchvision has no types
    """Mirrors the first half of a batch; as batches are shuffled, these are random photos."""

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        """Mirror photos, `[samples, 3, height, width]`, or label maps, `[samples, height, width]`, left to right."""
        half = len(inpt) // 2
        return _with_type_of(inpt, torch.cat([inpt[:half].flip(-1), inpt[half:]]))


def _with_type_of(original: Tensor, changed: Tensor) -> Tensor:
    """Return a changed tensor with the type of the original, which is that of photos or label maps."""
    wrapped: Tensor = wrap(changed, like=original)
    return wrapped

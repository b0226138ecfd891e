"""Augmentation of batches of photos, drawn from torch's global generator; transforms of torchvision serve as well."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Shift(nn.Module):
    """Shifts a batch by whole pixels, all of its photos alike; what moves in is reflected.

    Args:
        reach: Pixels that it is shifted by at most, in either direction.
    """

    def __init__(self, reach: int = 4) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, photos: Tensor) -> Tensor:
        """Shift photos, `[samples, 3, height, width]`."""
        down, right = torch.randint(-self.reach, self.reach + 1, (2,)).tolist()
        rows, columns = (
            _reflected(side, by, photos.device) for side, by in zip(photos.shape[2:], (down, right), strict=True)
        )
        return photos[:, :, rows][:, :, :, columns]


def _reflected(side: int, by: int, device: torch.device) -> Tensor:
    places = (torch.arange(side, device=device) + by).abs()
    return torch.where(places < side, places, 2 * (side - 1) - places)


class MirrorHalf(nn.Module):
    """Mirrors the first half of a batch, whose order is drawn."""

    def forward(self, photos: Tensor) -> Tensor:
        """Mirror photos, `[samples, 3, height, width]`, left to right."""
        half = len(photos) // 2
        return torch.cat([photos[:half].flip(3), photos[half:]])


class PermuteChannels(nn.Module):
    """Permutes the colour channels of a batch, of all of its photos alike, so that no class is told by its colours."""

    def forward(self, photos: Tensor) -> Tensor:
        """Permute the channels of photos, `[samples, 3, height, width]`."""
        return photos[:, torch.randperm(3)]

"""Photos of both splits that look alike: copies of other sizes, compressed once more, or slightly brighter."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

SIDE = 8
# See docs/protocol.md: different photos had 0.98 at most, copies of another size or compression 0.998 at least.
ALIKE = 0.995
# Products of thumbnails that are held at once, 64 MB.
BLOCK = 2**24


def thumbnails(pixels: Tensor) -> Tensor:
    """Shrink pictures to what is compared.

    Args:
        pixels: Prepared pictures, uint8 `[pictures, 3, side, side]`.

    Returns:
        Mean grey of 8 x 8 fields, less its mean and of length 1, `[pictures, 64]`; zeros for a picture of one grey.
    """
    fields = adaptive_avg_pool2d(pixels.float().mean(1, keepdim=True), SIDE).flatten(1)
    return normalize(fields - fields.mean(1, keepdim=True), eps=1.0)


def find_near_duplicates(train: Tensor, validation: Tensor) -> list[tuple[int, int]]:
    """Find the validation pictures that look like a training picture.

    Args:
        train: Thumbnails of the training pictures, `[samples, 64]`.
        validation: Thumbnails of the validation pictures, `[samples, 64]`.

    Returns:
        The places of the closest training picture and of the validation picture, for each that has one.
    """
    pairs = []
    step = max(1, BLOCK // len(train))
    for first, block in zip(range(0, len(validation), step), validation.split(step), strict=True):
        likeness, closest = (block @ train.T).max(1)
        pairs += [(int(closest[i]), first + i) for i in torch.nonzero(likeness > ALIKE)[:, 0].tolist()]
    return pairs

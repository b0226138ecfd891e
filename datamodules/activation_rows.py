"""Activations at a freeze boundary as rows of bytes, in the precision in which they were computed."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# Bytes of the thumbnail in front: 64 values in float32.
THUMBNAIL_BYTES = 4 * 64


def pack(activations: Tensor, thumbnails: Tensor) -> Tensor:
    """Join activations and thumbnails to rows.

    Args:
        activations: `[pictures, channels, height, width]`, `[pictures, tokens, width]` or `[pictures, values]`.
        thumbnails: float32, `[pictures, 64]`.

    Returns:
        uint8, `[pictures, bytes]`: the thumbnail, then the activations; those of feature maps are channels-last.
    """
    values = activations.permute(0, 2, 3, 1) if activations.dim() == 4 else activations
    return torch.cat([part.flatten(1).contiguous().view(torch.uint8) for part in (thumbnails, values)], 1)


def notes_of(activations: Tensor) -> dict[str, Any]:
    """Return shape and type of activations, which `unpack` needs, as JSON values.

    Args:
        activations: As for `pack`.
    """
    return {"shape": list(activations.shape[1:]), "dtype": str(activations.dtype).removeprefix("torch.")}


def unpack(rows: Tensor, notes: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Split rows into activations and thumbnails; the activations are not copied.

    Args:
        rows: Rows of `pack`.
        notes: Notes of `notes_of`.

    Returns:
        Activations and thumbnails, as they were; maps in the channels-last layout.
    """
    values = rows[:, THUMBNAIL_BYTES:].view(getattr(torch, notes["dtype"]))
    thumbnails = rows[:, :THUMBNAIL_BYTES].contiguous().view(torch.float32)
    shape = notes["shape"]
    if len(shape) == 3:
        channels, height, width = shape
        return values.unflatten(1, (height, width, channels)).permute(0, 3, 1, 2), thumbnails
    return values.unflatten(1, shape), thumbnails

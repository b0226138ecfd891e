"""Features of sampled pixels: a network runs on one photo after the other, and only the sample is stored."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from headstart.datamodules.row_computation import require_device
from headstart.datamodules.row_request import NetworkSettings, pass_size
from headstart.metrics.transferability.pixel_sampling import count_pixels, sample_pixels
from headstart.modules.arithmetic import deterministic
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors
from headstart.output.errors import UserError
from headstart.output.progress import Progress


def compute_pixels(
    network: NetworkSpec,
    photos: Any,  # noqa: ANN401 - an array, or rows that are read when they are indexed
    labels: NDArray[np.uint8],
    settings: NetworkSettings,
    per_photo: int,
    seed: int,
    title: str,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Compute one row of a table: of each sampled pixel its features, the logits of the source head, label and photo.

    Args:
        network: The network, which gives features of every pixel.
        photos: Prepared photos, uint8 `[photos, 3, crop, crop]`.
        labels: Their label maps, uint8 `[photos, crop, crop]`.
        settings: How features are computed.
        per_photo: Pixels of a photo, at most.
        seed: Seed of the sample.
        title: Title of the progress.

    Returns:
        The row, float32 `[1, pixels, features + source classes + 2]`, and its notes.
    """
    device = require_device(settings)
    with prefix_model_errors(network.name):
        backbone = build_backbone(network).to(device)
        backbone.try_out(network)
    counts, generator = count_pixels([labels], NO_CLASS), np.random.default_rng(seed)
    at_once, parts = pass_size(backbone.preprocessing.crop, device.type), list[NDArray[np.float32]]()

    with deterministic(), torch.inference_mode(), Progress(title, len(photos), "photos") as progress:
        for first in range(0, len(photos), at_once):
            some = torch.tensor(photos[first : first + at_once], device=device)
            with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
                maps = backbone(some).float().movedim(-1, 1)
            if not maps.isfinite().all():
                raise UserError(f"model {network.name!r} returns NaN or infinite features")

            for photo, features in enumerate(maps, first):
                photo_labels = labels[photo][None]
                if (photo_labels != NO_CLASS).any():
                    sample = sample_pixels(features[None], photo_labels, per_photo, NO_CLASS, generator, counts)
                    pixels, classes = (torch.as_tensor(array, device=device) for array in sample)
                    parts.append(_with_logits(backbone, pixels, classes, photo))
            progress.advance(len(some))
    return np.concatenate(parts)[None], {"width": backbone.width, "weights": backbone.digest()}


def _with_logits(backbone: Backbone, pixels: Tensor, classes: Tensor, photo: int) -> NDArray[np.float32]:
    """Return the columns of the sampled pixels of a photo."""
    head = backbone.source_head
    logits = pixels[:, :0] if head is None else functional.linear(pixels, head, backbone.source_bias)
    numbers = torch.stack([classes, torch.full_like(classes, photo)], 1)
    return np.asarray(torch.cat([pixels, logits, numbers], 1).cpu().numpy())

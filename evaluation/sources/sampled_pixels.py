"""Features of sampled pixels: a network runs on one photo after the other, and only the sample is stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from headstart.datamodules.row_computation import require_device
from headstart.datamodules.row_request import Policy, pass_size
from headstart.metrics.transferability.pixel_sampling import count_pixels, sample_pixels
from headstart.modules.arithmetic import deterministic
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors
from headstart.output.errors import UserError
from headstart.output.progress import Progress


@dataclass(eq=False)
class SampledPixels:
    """One row of a table: for each sampled pixel its features, the logits of the source head, its label, its photo.

    Args:
        network: The network, which gives features of every pixel.
        photos: Prepared photos, uint8 `[photos, 3, crop, crop]`.
        labels: Their label maps, uint8 `[photos, crop, crop]`.
        policy: How features are computed.
        per_photo: Pixels of a photo, at most.
        seed: Seed of the sample.
        title: Title of the progress.
    """

    network: NetworkSpec
    photos: Any
    labels: NDArray[np.uint8]
    policy: Policy
    per_photo: int
    seed: int
    title: str

    def compute(self) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Return the row, float32 `[1, pixels, features + source classes + 2]`, and its notes."""
        device = require_device(self.policy)
        with prefix_model_errors(self.network.name):
            backbone = build_backbone(self.network).to(device)
            backbone.try_out(self.network)
        with deterministic(), torch.inference_mode():
            rows = np.concatenate(list(self._parts(backbone, device)))[None]
        return rows, {"width": backbone.width, "weights": backbone.digest()}

    def _parts(self, backbone: Backbone, device: torch.device) -> Iterator[NDArray[np.float32]]:
        head, bias = backbone.source_head, backbone.source_bias
        counts, generator = count_pixels([self.labels], NO_CLASS), np.random.default_rng(self.seed)
        at_once = pass_size(backbone.preprocessing.crop, device.type)

        with Progress(self.title, len(self.photos), "photos") as progress:
            for first in range(0, len(self.photos), at_once):
                photos = torch.tensor(self.photos[first : first + at_once], device=device)
                with torch.autocast(device.type, torch.bfloat16, enabled=self.policy.precision == "bfloat16"):
                    maps = backbone(photos).float().movedim(-1, 1)
                if not maps.isfinite().all():
                    raise UserError(f"model {self.network.name!r} returns NaN or infinite features")

                for photo, features in enumerate(maps, first):
                    labels = self.labels[photo][None]
                    if (labels == NO_CLASS).all():
                        continue
                    sample = sample_pixels(features[None], labels, self.per_photo, NO_CLASS, generator, counts)
                    pixels, classes = (torch.as_tensor(each, device=device) for each in sample)
                    logits = pixels[:, :0] if head is None else functional.linear(pixels, head, bias)
                    numbers = torch.stack([classes, torch.full_like(classes, photo)], 1)
                    yield torch.cat([pixels, logits, numbers], 1).cpu().numpy()
                progress.advance(len(photos))

"""The stream of photos, for methods that train the backbone."""

from __future__ import annotations

from typing import Any

import torch
from jsonargparse.typing import PositiveInt
from torch import Tensor

from datamodules.near_duplicates import thumbnails
from datamodules.photos.photo_source import Photos
from datamodules.row_policy import Means, pass_size
from datamodules.rows import pixels
from datamodules.sample_stream import SampleStream
from modules.networks.backbone import Backbone
from output.errors import UserError
from store.row_store import StoredRows

# Of which thumbnails are made, in a processor's cache.
PHOTOS_AT_ONCE = 16


class PhotoStream(SampleStream):
    """Feeds photos, decoded once and kept on disk as bytes, to methods that train the backbone.

    Every method has its own copy of the backbone, so that one ordering runs per process: choose it with
    `first_ordering` and leave `orderings` at 1.
    """

    trainer_precisions = ("32-true", "bf16-mixed")

    # Of the type that it has in other streams: the parser keeps a value that was given before the class.
    def __init__(self, orderings: PositiveInt = 1, **kwargs: Any) -> None:
        if orderings != 1:
            raise UserError(
                f"data.orderings: {orderings} asked for, but a trainable backbone takes one ordering per process; "
                "run one process per data.first_ordering and join them with evaluate.py sample-efficiency"
            )
        super().__init__(orderings=orderings, **kwargs)

    @property
    def validation_chunk(self) -> int:
        """Photos in one pass of an evaluation."""
        return pass_size(self.backbone.preprocessing.crop, self.device.type)

    def rows(self, photos: Photos, means: Means) -> StoredRows:
        """Find or prepare the photos of one split, uint8 `[samples, 3, height, width]`."""
        return pixels(self.backbone.preprocessing, photos, means)

    def split(self, found: Tensor) -> tuple[Tensor, Tensor]:
        """Make the thumbnails of the photos."""
        return found, torch.cat([thumbnails(photos) for photos in found.split(PHOTOS_AT_ONCE)])

    def trainable_backbone(self) -> Backbone:
        """Give the backbone, of which every method makes its own copy."""
        return self.backbone

    def protocol(self) -> dict[str, Any]:
        """Describe what was fed."""
        return {**super().protocol(), "inputs": "photos", "picture_size": self.backbone.preprocessing.crop}

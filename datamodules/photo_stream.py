"""The stream of photos, for methods that train the backbone."""

from __future__ import annotations

from typing import Any

from datamodules.photos.photo_source import Photos
from datamodules.rows import PixelRows, pass_size
from datamodules.sample_stream import SampleStream
from modules.networks.backbone import Backbone
from output.errors import UserError
from store.feature_store import Entry, FeatureStore


class PhotoStream(SampleStream):
    """Feeds photos, decoded once and kept on disk as bytes, to methods that train the backbone.

    Every method has its own copy of the backbone, so that one ordering runs per process: choose it with
    `first_ordering` and leave `orderings` at 1.
    """

    def __init__(self, orderings: int = 1, **kwargs: Any) -> None:
        if orderings != 1:
            msg = (
                f"data.orderings: {orderings} asked for, but a trainable backbone takes one ordering per process; "
                "run one process per data.first_ordering and join them with evaluate.py sample-efficiency"
            )
            raise UserError(msg)
        super().__init__(orderings=orderings, **kwargs)

    @property
    def validation_chunk(self) -> int:
        """Photos in one pass of an evaluation."""
        return pass_size(self.backbone.preprocessing.crop, self.device)

    def rows(self, photos: Photos, split: str, store: FeatureStore) -> Entry:
        """Fetch the prepared photos of one split, uint8 `[samples, 3, height, width]`."""
        preprocessing = self.backbone.preprocessing
        key = {
            "content": "pixels",
            "resize": preprocessing.resize,
            "crop": preprocessing.crop,
            "interpolation": preprocessing.interpolation,
            "photos": photos.fingerprint(),
        }
        return store.get(key, PixelRows(photos, preprocessing, self.num_workers, f"{split} photos"))

    def trainable_backbone(self) -> Backbone:
        """Give the backbone, of which every method makes its own copy."""
        return self.backbone

    def protocol(self) -> dict[str, Any]:
        """Describe what was fed."""
        return {**super().protocol(), "inputs": "photos", "picture_size": self.backbone.preprocessing.crop}

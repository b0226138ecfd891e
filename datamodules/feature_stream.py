"""The stream of frozen features."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from datamodules.photos.photo_source import Photos
from datamodules.rows import FeatureRows, best_precision
from datamodules.sample_stream import SampleStream
from store.feature_store import Entry, FeatureStore


class FeatureStream(SampleStream):
    """Feeds features of the frozen backbone, computed once and kept on disk.

    Args:
        precision: Arithmetic of the backbone; `auto` takes bfloat16 where the processor or GPU gains from it.
    """

    def __init__(self, precision: Literal["auto", "float32", "bfloat16"] = "auto", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.precision = precision

    def setup(self, stage: str) -> None:
        """Compute or open the features, then hold them where the methods run."""
        super().setup(stage)
        self.train_inputs, self.train_labels = self.train_inputs.to(self.device), self.train_labels.to(self.device)
        self.validation_inputs = self.validation_inputs.to(self.device)
        self.validation_labels = self.validation_labels.to(self.device)

    @property
    def validation_chunk(self) -> int:
        """Features that are classified at once."""
        return 16_384

    def rows(self, photos: Photos, split: str, store: FeatureStore) -> Entry:
        """Fetch the features of one split, `[samples, features]`."""
        self.arithmetic = best_precision(self.device) if self.precision == "auto" else self.precision
        key = {
            "content": "features",
            "backbone": self.spec.name,
            "model_args": self.spec.arguments,
            "weights": self.weights_digest,
            "preprocessing": asdict(self.backbone.preprocessing),
            "photos": photos.fingerprint(),
            "precision": self.arithmetic,
        }
        title = f"features of the {split} photos"
        return store.get(key, FeatureRows(photos, self.backbone, self.arithmetic, self.num_workers, title))

    def trainable_backbone(self) -> None:
        """Give none: the methods see features only."""

    def protocol(self) -> dict[str, Any]:
        """Describe what was fed, with the arithmetic of the features."""
        return {**super().protocol(), "inputs": "frozen features", "feature_precision": self.arithmetic}

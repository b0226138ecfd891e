"""Target data sets: labelled photos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from output.errors import naming

Split = Literal["train", "validation"]
# What messages and reports call the photos of a split.
SPLITS: dict[Split, str] = {"train": "training", "validation": "validation"}


@dataclass(frozen=True)
class Target:
    """A target data set.

    Attributes:
        name: What the table calls it.
        dataset: What the source of photos calls it.
        split: Which of its splits is taken.
        photos: The photos.
        fingerprint: Digest of the photos: their contents, names, labels and order.
    """

    name: str
    dataset: str
    split: Split
    photos: Photos
    fingerprint: str

    def describe(self) -> dict[str, Any]:
        """Say as JSON values what its photos are, and how many."""
        classes = list(self.photos.classes)
        described = {"dataset": self.dataset, "photos": len(self.photos), "classes": classes}
        return {**described, "fingerprint": self.fingerprint}


def read_target(name: str, source: PhotoSource, split: Split, cache: Path, option: str) -> Target:
    """List the photos of a target and digest them.

    Args:
        name: What the table calls it.
        source: The source of photos.
        split: Which of its splits is taken.
        cache: The cache folder, which holds downloads that were given no folder of their own.
        option: The option that the source was given by, with which errors begin.

    Raises:
        UserError: The photos cannot be found or read, or there are fewer than two classes of them.
    """
    with naming(option):
        source.prepare(cache)
        photos = source.train() if split == "train" else source.validation()
        require_classes(photos, SPLITS[split])
        return Target(name, source.name, split, photos, photos.fingerprint())

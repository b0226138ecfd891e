"""Target data sets: labelled photos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from output.errors import naming

if TYPE_CHECKING:
    from datamodules.photos.photo_source import Photos, PhotoSource

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class Target:
    """A target data set.

    Attributes:
        name: What the table calls it.
        dataset: What the source of photos calls it.
        photos: The photos.
        fingerprint: Digest of the photos that these are selected from, which may be all of them.
    """

    name: str
    dataset: str
    photos: Photos
    fingerprint: str


def read_target(name: str, source: PhotoSource, split: Split, cache: Path, option: str) -> Target:
    """List the photos of a target and digest them.

    Args:
        name: What the table calls it.
        source: The source of photos.
        split: Which of its splits is taken.
        cache: The cache folder, which holds downloads that were given no folder of their own.
        option: The option that the source was given by, with which errors begin.

    Returns:
        The target.

    Raises:
        UserError: The photos cannot be found or read, or there are fewer than two classes of them.
    """
    from datamodules.photos.photo_source import PhotoSubset, require_classes

    with naming(option):
        source.prepare(cache)
        photos = source.train() if split == "train" else source.validation()
        require_classes(photos, "training" if split == "train" else split)
        whole = photos
        while isinstance(whole, PhotoSubset):
            whole = whole.photos
        return Target(name, source.name, photos, whole.fingerprint())

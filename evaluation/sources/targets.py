"""Target data sets: labelled photos, and where their features are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

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
        whole: The photos that these are selected from, which may be all of them. Features are kept by their place
            there, so that all selections share them.
        places: Place of each photo in the whole, `[samples]`.
        fingerprint: Digest of the whole.
    """

    name: str
    dataset: str
    photos: Photos
    whole: Photos
    places: NDArray[np.int64]
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
        whole, places = photos, np.arange(len(photos))
        while isinstance(whole, PhotoSubset):
            places = whole.indices[places]
            whole = whole.photos
        return Target(name, source.name, photos, whole, places, whole.fingerprint())

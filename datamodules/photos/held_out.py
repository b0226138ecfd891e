"""A seeded split for data sets that come without one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datamodules.photos.photo_source import Photos
from output.errors import UserError


def hold_out(
    names: Sequence[str], labels: NDArray[np.int64], classes: Sequence[str], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Choose the photos that are held out for validation, the same share of every class.

    Ranked by a digest of the seed and the name, a choice is the same on every system and with every version of NumPy.

    Args:
        names: What each photo is called, unique, `[samples]`.
        labels: Its class, `[samples]`.
        classes: Names of the classes.
        fraction: Share of every class that is held out; at least one photo is, and at least one is not.
        seed: Seed of the choice.

    Returns:
        Whether each photo is held out, `[samples]`.

    Raises:
        UserError: A class has fewer than two photos.
    """
    held = np.zeros(len(names), dtype=np.bool_)
    for label, title in enumerate(classes):
        members = np.flatnonzero(labels == label).tolist()
        if len(members) < 2:
            raise UserError(
                f"class {title} needs two or more photos, to hold some out for validation; it has {len(members)}"
            )
        ranks = {i: hashlib.sha256(f"{seed}/{names[i]}".encode(errors="surrogateescape")).digest() for i in members}
        size = min(max(round(fraction * len(members)), 1), len(members) - 1)
        held[sorted(members, key=ranks.__getitem__)[:size]] = True
    return held


def split_photos(photos: Photos, fraction: float, seed: int) -> tuple[Photos, Photos]:
    """Split photos into those for training and those that are held out for validation.

    Args:
        photos: The photos.
        fraction: Share of every class that is held out.
        seed: Seed of the choice.

    Returns:
        The training and the validation photos.

    Raises:
        UserError: A class has fewer than two photos.
    """
    held = hold_out(photos.names, photos.labels, photos.classes, fraction, seed)
    return photos.subset(np.flatnonzero(~held)), photos.subset(np.flatnonzero(held))

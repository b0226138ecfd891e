"""The labelled photos that are given, and what is wrong with them."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from torch import Tensor

from headstart.datamodules.photos.class_folders import UnsplitClassFolders
from headstart.datamodules.photos.drawn_photos import DrawnPets
from headstart.datamodules.photos.duplicates import count_once
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import find_source
from headstart.datamodules.photos.near_duplicates import find_alike
from headstart.datamodules.photos.photo_source import Photos, SplitSource, require_classes
from headstart.metrics.arrays import Indices
from headstart.output.errors import UserError, prefix_errors

DEMO_SIZE = 60


@dataclass(frozen=True)
class LabelledPhotos:
    """Labelled photos, and what is wrong with them.

    Attributes:
        name: Name of the data set.
        photos: The photos.
        left_out: Number of files beside them that are left out, by reason.
        repeated: Names of photos of equal content in one class, of which the first stays.
        contradicting: Names of photos of equal content in several classes, which all stay.
        alike: Names of photos of one class that look alike, of which the first stays; empty if nobody asked.
        unreadable: Why photos cannot be decoded, by name.
        single: Classes of one photo.
    """

    name: str
    photos: Photos
    left_out: dict[str, int]
    repeated: list[list[str]] = field(default_factory=list)
    contradicting: list[list[str]] = field(default_factory=list)
    alike: list[list[str]] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def single(self) -> list[str]:
        """Classes of one photo."""
        sizes = np.bincount(self.photos.labels, minlength=len(self.photos.classes))
        return [name for name, size in zip(self.photos.classes, sizes, strict=True) if size == 1]


def read_photos(photos: str | None, demo: bool, cache: Path) -> LabelledPhotos:
    """List the photos; nothing is decoded.

    Args:
        photos: A folder of class folders, or what `given_pictures.find_source` knows, with labels.
        demo: Whether drawn photos are taken instead.
        cache: The cache folder.

    Raises:
        UserError: There are none, or fewer than two classes.
    """
    if (photos is None) != demo:
        needed = "give a folder with one folder of photos per class, or --demo=true"
        raise UserError(f"photos: {needed}{', and not both' if demo else ''}")
    with prefix_errors("photos", single=True):
        name, listed = (
            _list(photos, cache) if photos is not None else (DrawnPets.name, DrawnPets(train_size=DEMO_SIZE).train())
        )
        require_classes(listed, "labelled")
        listed.packed_digests(cache)
    return LabelledPhotos(name, listed, report_left_out(listed.left_out, "photos"))


def _list(photos: str, cache: Path) -> tuple[str, Photos]:
    source: SplitSource = find_source(photos) or UnsplitClassFolders(photos)
    source.prepare(cache)
    train, validation = source.splits()
    if validation is not None:
        train.left_out = {**train.left_out, **dict.fromkeys(map(str, validation.names), "of the validation split")}
    return source.name, train


def select(
    labelled: LabelledPhotos, thumbnails: Tensor | None, unreadable: dict[int, str]
) -> tuple[LabelledPhotos, Indices]:
    """Leave out photos that cannot be decoded, then those that an earlier one of their class equals or looks like.

    A copy is no new sample: with one of two copies left out, training would still see the other.

    Args:
        labelled: The photos.
        thumbnails: Their thumbnails, by which copies of another size or compression are found, `[photos, 64]`; None
            to leave out equal files alone.
        unreadable: Why photos cannot be decoded, by index.

    Returns:
        The photos that remain, and their indices.

    Raises:
        UserError: No photo of a class can be decoded, or no class has two.
    """
    photos = labelled.photos
    once = count_once(photos, without=unreadable)
    keeps = np.zeros(len(photos), dtype=np.bool_)
    keeps[once.kept] = True
    pairs = [
        (first, second)
        for first, second in ([] if thumbnails is None else find_alike(thumbnails))
        if keeps[first] and keeps[second] and photos.labels[first] == photos.labels[second]
    ]
    keeps[[second for _, second in pairs]] = False

    remaining = np.flatnonzero(keeps)
    lost = sorted({*range(len(photos.classes))} - {*photos.labels[remaining].tolist()})
    if lost:
        names = ", ".join(photos.classes[label] for label in lost)
        raise UserError(f"photos: no photo of class {names} can be decoded; mend them or remove the class")
    if len(remaining) == len(photos.classes):
        raise UserError("photos: every class has one photo, and an accuracy needs two of a class; add photos")
    kept = replace(
        labelled,
        photos=photos.subset(remaining),
        repeated=once.repeated,
        contradicting=once.in_several_classes,
        alike=[[photos.names[index] for index in pair] for pair in pairs],
        unreadable={photos.names[index]: reason for index, reason in unreadable.items()},
    )
    return kept, remaining

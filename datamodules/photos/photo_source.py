"""Labelled photos: one split of a data set, the sources of a training and a validation split, and a seeded split."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.folder_listing import in_order, warn_of_like_classes
from headstart.datamodules.photos.picture_decoding import decode, read_digested
from headstart.datamodules.photos.pictures import PicturePart, Pictures
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store.feature_table import Digests, pack
from headstart.store.file_digests import digest_files


class Photos(Pictures):
    """Labelled photos that are decoded on demand.

    Attributes:
        labels: Class of each photo, integers from 0, `[samples]`.
        classes: Names of the classes.
        left_out: Why other files are left out, such as their endings, by name.
        maps: Label maps of photos with a class for every pixel, in their order. They are pictures whose three channels
            all are the label, or 255 without a label. The photos' own labels then are 0. None where a photo as a whole
            has a class.
    """

    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    left_out: Mapping[str, str] = {}
    maps: Photos | None = None

    def fingerprint(self) -> str:
        """Digest the data set: it changes whenever a photo, its name, its label or their order does."""
        digest = hashlib.sha256("\0".join(self.classes).encode(errors="surrogateescape"))
        for name, label, content in zip(self.names, self.labels, self.packed_digests(), strict=True):
            # A name that is not valid UTF-8 comes from the file system with surrogates in it.
            digest.update(f"\0{name}\0{label}\0".encode(errors="surrogateescape") + content.ljust(32, b"\0"))
        if self.maps is not None:
            digest.update(bytes.fromhex(self.maps.fingerprint()))
        return digest.hexdigest()

    def subset(self, indices: NDArray[np.int64]) -> Photos:
        """Select some of the photos.

        Args:
            indices: Indices of the selected photos, in the order of the subset.

        Returns:
            Photos that read from these.
        """
        return PhotoSubset(self, indices)


class PhotoSubset(PicturePart, Photos):
    """Some of the photos of another set.

    Args:
        photos: The photos to select from.
        indices: Indices of the selected ones.
    """

    def __init__(self, photos: Photos, indices: NDArray[np.int64]) -> None:
        super().__init__(photos, indices)
        self.labels = photos.labels[indices]
        self.classes = photos.classes
        self.left_out = photos.left_out
        self.maps = None if photos.maps is None else photos.maps.subset(indices)


class PictureFiles(Pictures):
    """Pictures in files; what is decoded later must be the bytes that were digested."""

    @abstractmethod
    def path(self, index: int) -> str:
        """Return the absolute path of one picture's file."""

    def open(self, index: int) -> BinaryIO:
        """Read the bytes of one file, and check that they are those that were digested, if any were."""
        return read_digested(self.path(index), self.known_digest(index))

    def digest(self, index: int) -> str:
        """Digest the bytes of one file."""
        return digest_file(self.path(index))

    def digest_some(self, indices: list[int], cache: Path | None) -> Digests:
        """Digest the bytes of some files."""
        return pack(digest_files([self.path(index) for index in indices], cache))


class PhotoFiles(PictureFiles, Photos):
    """Photos in files, decoded by `decode`.

    Args:
        root: Folder that the names are relative to.
        names: Paths relative to the root, with forward slashes.
        labels: Class of each photo.
        classes: Names of the classes.
        left_out: Why other files are left out, such as their endings, by name.
    """

    def __init__(
        self,
        root: str | Path,
        names: Sequence[str],
        labels: Sequence[int],
        classes: Sequence[str],
        left_out: Mapping[str, str] = {},
    ) -> None:
        self.root = str(Path(root).absolute())
        self.left_out = left_out
        self.names = list(names)
        self.labels = np.asarray(labels, dtype=np.int64)
        self.classes = tuple(classes)

    def read(self, index: int) -> Image.Image:
        """Decode one photo."""
        return decode(self.open(index))

    def path(self, index: int) -> str:
        """Return the absolute path of one photo's file."""
        return os.path.join(self.root, self.names[index])  # noqa: PTH118 - a Path for each of many files takes long

    def part(self, indices: NDArray[np.int64]) -> Pictures:
        """Return some photos on their own."""
        # A class that decodes files in another way may know more of each than its name.
        if type(self) is not PhotoFiles:
            return super().part(indices)
        names, labels = [self.names[index] for index in indices], self.labels[indices].tolist()
        return PhotoFiles(self.root, names, labels, self.classes)


class PhotoSource(ABC):
    """A data set with a training and a validation split.

    Attributes:
        name: Name of the data set in results, the run's folder and the dashboard; by default its class's name.
    """

    name: str

    def __init_subclass__(cls) -> None:
        """Name the data set after its class where neither the class nor a parent names it."""
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def prepare(self, cache: Path | None = None) -> None:  # noqa: B027  (most data sets have nothing to fetch)
        """Fetch what is missing on disk, once, before anything is read; nothing by default.

        Args:
            cache: The cache folder, which holds downloads without a folder of their own.
        """

    @abstractmethod
    def train(self) -> Photos:
        """Return the training photos, of which the stream is made."""

    @abstractmethod
    def validation(self) -> Photos:
        """Return the validation photos."""

    def both(self) -> tuple[Photos, Photos]:
        """Return the training and the validation photos, listed once where they are listed together."""
        return self.train(), self.validation()


class SplitSource(PhotoSource):
    """A data set whose splits are listed together; where there is one alone, a seeded part is held out for validation.

    Attributes:
        validation_fraction: Share of each class that is held out; None for nothing.
        split_seed: Seed of the choice.
    """

    validation_fraction: float | None = None
    split_seed: int = 0

    @abstractmethod
    def splits(self) -> tuple[Photos, Photos | None]:
        """Return the training and the validation photos; None where the latter are a part of the former."""

    def train(self) -> Photos:
        """List the training photos."""
        train, validation = self.splits()
        return train if validation is not None or self.validation_fraction is None else self._split(train, held=False)

    def validation(self) -> Photos:
        """List the validation photos."""
        train, validation = self.splits()
        return self._split(train, held=True) if validation is None else validation

    def both(self) -> tuple[Photos, Photos]:
        """Return the photos of both splits, listed once."""
        if (type(self).train, type(self).validation) != (SplitSource.train, SplitSource.validation):
            # A class of the user's own returns others.
            return super().both()
        train, validation = self.splits()
        if validation is None:
            return self._split(train, held=False), self._split(train, held=True)
        return train, validation

    def _split(self, photos: Photos, held: bool) -> Photos:
        if self.validation_fraction is None:
            raise UserError(
                f"validation_fraction: required, since all photos of {self.name} are for training; "
                "give a share to hold out, such as 0.2"
            )
        is_held_out = hold_out(photos.names, photos.labels, photos.classes, self.validation_fraction, self.split_seed)
        return photos.subset(np.flatnonzero(is_held_out == held))


def number_classes(names: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return the class of each photo, -1 where its name is empty, and the names of the classes in their order."""
    classes = tuple(sorted({*names} - {""}, key=in_order))
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers.get(name, -1) for name in names], classes


def require_same_classes(option: str, train: Photos, validation: Photos) -> None:
    """Raise a UserError, which names an option, if the splits have different classes."""
    if train.classes != validation.classes:
        raise UserError(
            f"{option}: the classes of the validation photos are {', '.join(validation.classes)}, and those of the "
            f"training photos {', '.join(train.classes)}; they must be the same"
        )


def hold_out(
    names: Sequence[str], labels: NDArray[np.int64], classes: Sequence[str], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Choose the photos that are held out for validation, the same share of every class.

    A digest of the seed and the name ranks the photos. The choice is thus the same on every system and with every
    version of NumPy.

    Args:
        names: Name of each photo, unique, `[samples]`.
        labels: Class of each photo, `[samples]`.
        classes: Names of the classes.
        fraction: Share of every class that is held out; at least one photo is, and at least one is not.
        seed: Seed of the choice.

    Returns:
        Whether each photo is held out, `[samples]`.

    Raises:
        UserError: A class has fewer than two photos.
    """
    is_held_out = np.zeros(len(names), dtype=np.bool_)
    for label, title in enumerate(classes):
        members = np.flatnonzero(labels == label).tolist()
        if len(members) < 2:
            raise UserError(
                f"class {title} needs two or more photos, to hold some out for validation; it has {len(members)}"
            )
        ranks = {i: hashlib.sha256(f"{seed}/{names[i]}".encode(errors="surrogateescape")).digest() for i in members}
        size = min(max(round(fraction * len(members)), 1), len(members) - 1)
        is_held_out[sorted(members, key=ranks.__getitem__)[:size]] = True
    return is_held_out


def require_classes(photos: Photos, split: str, warns: bool = True) -> None:
    """Check that photos are of two classes at least and that none is empty; warn of classes whose names look alike.

    Args:
        photos: The photos to check.
        split: Which split they are, for the message.
        warns: Whether to warn.

    Raises:
        UserError: There is one class only, or a class has no photo, or there is a class for every pixel.
    """
    if photos.maps is not None:
        raise UserError(
            f"the {split} photos have a class for every pixel, but the command needs one per photo; headstart train "
            "takes them with --task=source_training and --task=target_accuracy, headstart transferability does, too"
        )
    if len(photos.classes) < 2:
        names = ", ".join(photos.classes)
        raise UserError(f"the {split} photos are of {len(photos.classes)} class ({names}); two or more are needed")
    counts = np.bincount(photos.labels, minlength=len(photos.classes))
    empty = [name for name, count in zip(photos.classes, counts, strict=True) if count == 0]
    if empty:
        raise UserError(f"there is no {split} photo of class {', '.join(empty)}")
    if warns:
        warn_of_like_classes(photos.classes)

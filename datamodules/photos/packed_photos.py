"""Photos that lie in larger files, many in each, and the sources of them."""

from __future__ import annotations

import copy
import errno
import hashlib
import io
import json
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.file_indexes import Arrays, FileIndex
from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.locations import expand, in_order, is_remote
from headstart.datamodules.photos.packed_names import LazyNames
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.picture_decoding import decode
from headstart.output.errors import UserError, prefix_errors
from headstart.store.name_index import HexNames

# Beginning of messages about files, which the option that names the files is put before.
ABOUT_FILES = "the "
# Label of a photo without one.
UNLABELLED = -1
# Arrays of an index with one entry for each photo; others are about the file.
COLUMNS = ("sha256", "labels", "offsets", "sizes", "groups", "rows")


class PackedFile(NamedTuple):
    """A file that holds photos.

    Attributes:
        location: Where it is.
        state: Its state when it was indexed, as `locations.state_of`.
    """

    location: str
    state: str


class PackedPhotos(Photos):
    """Photos that lie in larger files, many in each; none of them is a Python object.

    Args:
        files: The files.
        file: Index of each photo's file, `[samples]`.
        columns: Known values of each photo: `sizes` in bytes, `sha256`, `[samples, 32]`, `labels`, and where it
            lies.
        names: Their names.
        classes: Names of the classes.
    """

    has_small_parts = True

    def __init__(
        self,
        files: Sequence[PackedFile],
        file: NDArray[np.int32],
        columns: Arrays,
        names: LazyNames,
        classes: Sequence[str],
    ) -> None:
        self.files = files
        self.file = file
        self.columns = columns
        self.names: LazyNames = names
        self.labels = columns["labels"]
        self.classes = tuple(classes)

    @property
    def decoding(self) -> str:
        """Name of the function that decodes files. Sources that decode the same bytes alike share stored rows."""
        return f"{PhotoFiles.read.__module__}.{PhotoFiles.read.__qualname__} {self.own_code}".strip()

    @abstractmethod
    def content(self, index: int) -> bytes:
        """Read the bytes of one photo; an OSError with an `errno` if they cannot be read."""

    def read(self, index: int) -> Image.Image:
        """Decode one photo."""
        return decode(self.open(index))

    def open(self, index: int) -> BinaryIO:
        """Read the bytes of one photo, and check that they are those that were digested."""
        content = self.content(index)
        if hashlib.sha256(content).digest() != self.columns["sha256"][index].tobytes():
            location = self.files[self.file[index]].location
            raise OSError(errno.ESTALE, f"its bytes in {location} have changed since they were digested")
        return io.BytesIO(content)

    def digest(self, index: int) -> str:
        """Return the digest of the bytes of one photo."""
        digest: bytes = self.columns["sha256"][index].tobytes()
        return digest.hex()

    def digests(self, cache: Path | None = None) -> Sequence[str]:
        """Return the digests of all photos, which are known."""
        return HexNames(self.columns["sha256"])

    def set_digests(self, digests: Sequence[str]) -> None:
        """Set nothing: the digests are known."""

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of some photos."""
        return self.columns["sizes"][indices]

    def digest_some(self, indices: Iterable[int], cache: Path | None) -> list[str]:
        """Return the digests of some photos, which are known."""
        return [self.digest(index) for index in indices]

    def subset(self, indices: NDArray[np.int64]) -> Self:
        """Select some of the photos, with the files that hold them."""
        used, file = np.unique(self.file[indices], return_inverse=True)
        part = copy.copy(self)
        part.files = [self.files[number] for number in used]
        part.file = file.astype(np.int32)
        part.columns = {name: column[indices] for name, column in self.columns.items()}
        part.labels = part.columns["labels"]
        part.names = self.names.take(indices)
        return part

    def part(self, indices: NDArray[np.int64]) -> Self:
        """Return some photos on their own; pickled, they take about a hundred bytes each."""
        return self.subset(indices)


class PackedSource(SplitSource):
    """Photos in files that hold many each, listed by patterns.

    Args:
        train: Files of the training photos.
        validation: Files of the validation photos; None for a seeded part of the training photos.
        validation_fraction: Share of each class that is then held out.
        split_seed: Seed of that split.
    """

    # Noun for a file, and what photos without a label need.
    file_kind: str
    labels_by: str

    def __init__(
        self,
        train: list[str] | str,
        validation: list[str] | str | None,
        validation_fraction: float,
        split_seed: int,
    ) -> None:
        self.patterns = {"train": train, "validation": validation}
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed
        self.cache: Path | None = None
        first = train if isinstance(train, str) else next(iter(train), "")
        self.name = first.rsplit("/", 2)[-2] if is_remote(first) else Path(first).expanduser().absolute().parent.name

    def prepare(self, cache: Path | None = None) -> None:
        """Name the folder that keeps the indexes of the files.

        Args:
            cache: The cache folder.
        """
        self.cache = cache

    def splits(self) -> tuple[Photos, Photos | None]:
        """List the photos of both splits."""
        indexes = {}
        for option in [name for name, given in self.patterns.items() if given is not None]:
            with prefix_errors(option):
                locations = self._locations(option)
            with prefix_errors(option, about=ABOUT_FILES):
                indexes[option] = self.index(locations)

        classes = _classes([index for each in indexes.values() for index in each])
        found: dict[str, Photos] = {}
        for option, each in indexes.items():
            with prefix_errors(option):
                found[option] = self._require_labels(self._join(each, classes))
        return found["train"], found.get("validation")

    def pictures(self) -> PackedPhotos:
        """Return the training photos, also those without a label."""
        indexes = self.index(self._locations("train"))
        return self._join(indexes, _classes(indexes))

    @abstractmethod
    def index(self, locations: Sequence[str]) -> list[FileIndex]:
        """Index files."""

    @abstractmethod
    def photos(
        self, indexes: Sequence[FileIndex], file: NDArray[np.int32], columns: Arrays, classes: Sequence[str]
    ) -> PackedPhotos:
        """Return the photos of indexed files; arguments as for `PackedPhotos`."""

    def _locations(self, option: str) -> list[str]:
        """List the files that an option names; an error if there are none or one comes twice."""
        given = self.patterns[option] or []
        patterns = [given] if isinstance(given, str) else given
        locations = [
            location
            for pattern in patterns
            for location in expand(pattern if is_remote(pattern) else str(Path(pattern).expanduser()))
        ]
        if not locations:
            raise UserError(f"no {self.file_kind} is given; name one or more")
        counts = Counter(each if is_remote(each) else os.path.realpath(each) for each in locations)
        if twice := [location for location, count in counts.items() if count > 1]:
            raise UserError(f"the {self.file_kind} {twice[0]} is listed twice; list it once")
        return locations

    def _join(self, indexes: Sequence[FileIndex], classes: Sequence[str]) -> PackedPhotos:
        numbers = {name: number for number, name in enumerate(classes)}
        sizes = [len(index.arrays["labels"]) for index in indexes]
        columns = {
            name: np.concatenate([index.arrays[name] for index in indexes])
            for name in COLUMNS
            if name != "labels" and name in indexes[0].arrays
        }
        labels = []
        for index in indexes:
            # The last entry is that of photos without a label, whose index is -1.
            known = np.array([*(numbers[name] for name in _names_in(index)), UNLABELLED])
            labels.append(known[index.arrays["labels"]])
        columns["labels"] = np.concatenate(labels)
        return self.photos(indexes, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), columns, classes)

    def _require_labels(self, photos: PackedPhotos) -> PackedPhotos:
        unlabelled = np.flatnonzero(photos.labels == UNLABELLED)
        if len(unlabelled):
            first = int(unlabelled[0])
            location = photos.files[photos.file[first]].location
            raise UserError(
                f"{len(unlabelled)} of {len(photos)} photos have no label, first {photos.names[first]!r} of the "
                f"{self.file_kind} {location}; {self.labels_by}"
            )
        return photos


def packed_files(indexes: Sequence[FileIndex]) -> list[PackedFile]:
    """Return indexed files without their indexes."""
    return [PackedFile(index.location, index.state) for index in indexes]


def _names_in(index: FileIndex) -> list[str]:
    names: list[str] = json.loads(str(index.arrays["classes"]))
    return names


def _classes(indexes: Sequence[FileIndex]) -> list[str]:
    """Return the names of the classes: in the order in which the files' type lists them, else in that of the names."""
    lists = [_names_in(index) for index in indexes]
    if all(index.arrays.get("listed") and names == lists[0] for index, names in zip(indexes, lists, strict=True)):
        return lists[0]
    return sorted({name for names in lists for name in names}, key=in_order)

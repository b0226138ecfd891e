"""Photos in tar shards, as the package webdataset reads and writes them."""

import os
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from jsonargparse.typing import NonNegativeInt, OpenUnitInterval
from numpy.typing import NDArray

from headstart.datamodules.photos.file_indexes import Arrays, FileIndex, index_files
from headstart.datamodules.photos.locations import is_remote, read_bytes
from headstart.datamodules.photos.packed_names import PackedNames
from headstart.datamodules.photos.packed_photos import PackedPhotos, PackedSource, packed_files
from headstart.datamodules.photos.tar_index import index_tar, key_of
from headstart.output.errors import UserError

# Version of what an index holds.
VERSION = 2
# Most shards that a process holds open.
OPEN = 16


class WebDatasetShards(PackedSource):
    """Labelled photos in tar shards: `shards-{000000..000099}.tar`.

    A sample is one picture and its label: consecutive members with the same name up to the first dot. Each shard is
    read once; the cache keeps the positions of its pictures until the shard changes. The classes are numbered in the
    order of their labels. Shards can be on a remote file system.

    Args:
        train: Shards of the training photos: paths or URLs with `{000000..000099}` and wildcards, one or a list.
        validation: Shards of the validation photos. Without any, a seeded part of the training photos is held out.
        label: Key of the .json member that holds the label. The default is the text of the .cls member.
        image: Ending of the pictures, such as `left.png`, if samples have several.
        validation_fraction: Share of each class that is held out if `validation` is not given.
        split_seed: Seed of that split.
    """

    file_kind = "shard"

    def __init__(
        self,
        train: list[str] | str,
        validation: list[str] | str | None = None,
        label: str | None = None,
        image: str | None = None,
        validation_fraction: OpenUnitInterval = 0.2,
        split_seed: NonNegativeInt = 0,
    ) -> None:
        super().__init__(train, validation, validation_fraction, split_seed)
        self.label = label
        self.image = None if image is None else image.lower().removeprefix(".")
        self.labels_by = (
            "a label is the text of a .cls member, or with label=KEY a value of a .json member"
            if label is None
            else f"a label is the value of {label!r} in a .json member"
        )

    def index(self, locations: Sequence[str]) -> list[FileIndex]:
        """Index shards."""
        key = {"kind": "tar", "version": VERSION, "label": self.label, "image": self.image}
        return index_files(locations, self.cache, key, partial(index_tar, label=self.label, image=self.image))

    def photos(
        self, indexes: Sequence[FileIndex], file: NDArray[np.int32], columns: Arrays, classes: Sequence[str]
    ) -> PackedPhotos:
        """Return the photos of indexed shards.

        Raises:
            UserError: Two samples have the same key.
        """
        names = PackedNames.split(np.concatenate([index.arrays["names"] for index in indexes]))
        photos = ShardPhotos(packed_files(indexes), file, columns, names, classes)
        _require_different_keys(photos, np.concatenate([index.arrays["keys"] for index in indexes]))
        return photos


class ShardPhotos(PackedPhotos):
    """Photos in tar shards, of which `columns` has `offsets` and `sizes`."""

    def content(self, index: int) -> bytes:
        """Read the bytes of one photo from the middle of its shard."""
        shard = _opened(*self.files[self.file[index]])
        start, size = int(self.columns["offsets"][index]), int(self.columns["sizes"][index])
        if shard.number is None:
            return read_bytes(shard.location, start, start + size)
        return os.pread(shard.number, size, start)


class _Opened:
    """A shard; a local file is open, by its number, until nobody uses it."""

    number: int | None = None

    def __init__(self, location: str) -> None:
        self.location = location
        if not is_remote(location):
            self.number = os.open(location, os.O_RDONLY)

    def __del__(self) -> None:
        if self.number is not None:
            os.close(self.number)


@lru_cache(OPEN)
def _opened(location: str, state: str) -> _Opened:
    """Open a shard; one that has changed since, and has another state, is opened anew."""
    return _Opened(location)


def _require_different_keys(photos: ShardPhotos, keys: NDArray[np.uint64]) -> None:
    """Raise a UserError if two samples have the same key, of which 64 bits of a digest are given."""
    order = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    for first, second in zip(order[equal].tolist(), order[equal + 1].tolist(), strict=True):
        key = key_of(photos.names[first])
        # Digests of different keys may have the same beginning.
        if key == key_of(photos.names[second]):
            one, other = (photos.files[photos.file[each]].location for each in (first, second))
            shards = f"the shard {one}" if one == other else f"the shards {one} and {other}"
            others = f" ({len(equal) - 1} other keys, too)" if len(equal) > 1 else ""
            raise UserError(
                f"the key {key!r} is used twice in {shards}{others}; give every sample a key of its own, and pack its "
                "members one after the other (tar --sort=name)"
            )

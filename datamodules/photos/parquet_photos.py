"""Photos in Parquet files, as bytes in one of their columns."""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
from jsonargparse.typing import NonNegativeInt, OpenUnitInterval
from numpy.typing import NDArray

from headstart.datamodules.photos.file_indexes import Arrays, FileIndex, index_files
from headstart.datamodules.photos.packed_names import LazyNames, number
from headstart.datamodules.photos.packed_photos import PackedFile, PackedPhotos, PackedSource, packed_files
from headstart.datamodules.photos.parquet_index import index_parquet, open_parquet, read_group
from headstart.output.errors import UserError

# Version of what an index holds.
VERSION = 1
# Row groups that a process keeps in memory: reading one photo reads its whole group.
KEPT_GROUPS = 2


class ParquetPhotos(PackedSource):
    """Labelled photos in Parquet files, as bytes in one of their columns.

    The column holds bytes, or has the type Image of Hugging Face's library. Each file is read once; the cache keeps
    digests of its photos until the file changes. Classes have the order of the type ClassLabel, or else of their names.
    Files can be on a remote file system. Needs `headstart[datasets]`.

    Args:
        train: Files of the training photos: paths or URLs with `{0000..0099}` and wildcards, one or a list.
        validation: Files of the validation photos. Without any, a seeded part of the training photos is held out.
        image: Column of the photos, if several hold bytes.
        label: Column of the labels. The default is the column of type ClassLabel, or else `label`.
        validation_fraction: Share of each class that is held out if `validation` is not given.
        split_seed: Seed of that split.
    """

    file_kind = "Parquet file"
    labels_by = "name the column of the labels with label, and fill or leave out rows without one"

    def __init__(
        self,
        train: list[str] | str,
        validation: list[str] | str | None = None,
        image: str | None = None,
        label: str | None = None,
        validation_fraction: OpenUnitInterval = 0.2,
        split_seed: NonNegativeInt = 0,
    ) -> None:
        super().__init__(train, validation, validation_fraction, split_seed)
        self.image = image
        self.label = label

    def index(self, locations: Sequence[str]) -> list[FileIndex]:
        """Index files."""
        key = {"kind": "parquet", "version": VERSION, "image": self.image, "label": self.label}
        return index_files(locations, self.cache, key, partial(index_parquet, image=self.image, label=self.label))

    def photos(
        self, indexes: Sequence[FileIndex], file: NDArray[np.int32], columns: Arrays, classes: Sequence[str]
    ) -> PackedPhotos:
        """Return the photos of indexed files."""
        locations = [index.location for index in indexes]
        # Names do not depend on where the common folder of the files is.
        steps = [location.split("/") for location in locations]
        shared = len([*takewhile(lambda each: len({*each}) == 1, zip(*(path[:-1] for path in steps), strict=False))])
        titles = ["/".join(path[shared:]) for path in steps]
        names = number({title: len(each.arrays["rows"]) for title, each in zip(titles, indexes, strict=True)})
        image_columns = [str(index.arrays["column"]) for index in indexes]
        listed = all(index.arrays["listed"] for index in indexes)
        return RowGroupPhotos(packed_files(indexes), file, columns, names, classes, image_columns, listed)

    def pictures(self) -> RowGroupPhotos:
        """Return the training photos, also those without a label."""
        photos = super().pictures()
        assert isinstance(photos, RowGroupPhotos)
        return photos


class RowGroupPhotos(PackedPhotos):
    """Photos in Parquet files, of which `columns` has `groups` and `rows`; other arguments as for `PackedPhotos`.

    Args:
        files: The files.
        file: Index of each photo's file.
        columns: Known values of each photo.
        names: Their names.
        classes: Names of the classes.
        image_columns: Column of the photos in each file.
        listed: Whether the type of the labels lists the classes.
    """

    def __init__(
        self,
        files: Sequence[PackedFile],
        file: NDArray[np.int32],
        columns: Arrays,
        names: LazyNames,
        classes: Sequence[str],
        image_columns: Sequence[str],
        listed: bool,
    ) -> None:
        super().__init__(files, file, columns, names, classes)
        self.image_columns = dict(zip(files, image_columns, strict=True))
        self.listed = listed
        self._groups: OrderedDict[tuple[PackedFile, int], list[bytes]] = OrderedDict()

    def content(self, index: int) -> bytes:
        """Read the bytes of one photo, with those of its row group, which the next ones are in, too."""
        file, group = self.files[self.file[index]], int(self.columns["groups"][index])
        contents = self._groups.get((file, group))
        if contents is None:
            contents = self._groups[file, group] = self._read(file, group)
            while len(self._groups) > KEPT_GROUPS:
                self._groups.popitem(last=False)
        row = int(self.columns["rows"][index])
        return contents[row] if row < len(contents) else b""

    def _read(self, file: PackedFile, group: int) -> list[bytes]:
        try:
            return read_group(open_parquet(file.location), file.location, group, self.image_columns[file])
        except UserError as error:
            # It was whole when it was indexed, so that this says nothing about the photo.
            raise OSError(errno.EIO, str(error)) from error

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without row groups."""
        files = {file: self.image_columns[file] for file in self.files}
        return {**self.__dict__, "image_columns": files, "_groups": OrderedDict()}

"""Image classification data sets of the Hugging Face Hub, and local ones in the forms that its library reads."""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import NonNegativeInt, OpenUnitInterval
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.packed_names import LazyNames, number
from headstart.datamodules.photos.parquet_photos import ParquetPhotos, RowGroupPhotos
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.picture_decoding import decode, read_digested
from headstart.output.errors import UserError, reason_of
from headstart.output.files import digest_file

# Names of splits for validation; the first that exists is used.
VALIDATION_SPLITS = ("validation", "valid", "val", "dev", "test")
# Files that `save_to_disk` writes of several splits and of one.
SAVED = ("dataset_dict.json", "state.json")


class HuggingFaceDataset(SplitSource):
    """An image classification data set of the Hugging Face Hub, or a local one.

    Photos come from the only column of type Image, classes from the only column of type ClassLabel. The package
    datasets stores the data set in HF_HOME.

    Args:
        path: Name on the Hub, such as microsoft/cats_vs_dogs, or a folder. The folder is the output of `save_to_disk`,
            or holds Parquet files, or photos by split and class.
        subset: Name of the subset, if there are several.
        revision: Commit, branch or tag on the Hub. The default is the newest version.
        image: Column of the photos, if there are several.
        label: Column of the classes, if there are several.
        train_split: Split of the training photos.
        validation_split: Split of the validation photos. The default is the first of validation, valid, val, dev and
            test that has a class for every photo. Without one, a seeded part of the training split is held out.
        validation_fraction: Share of each class that is held out without a validation split.
        split_seed: Seed of that split.
        streaming: Read the photos from the Parquet files without downloading the data set. Each file is read once for
            its digests, and again to compute features.
    """

    def __init__(
        self,
        path: str,
        subset: str | None = None,
        revision: str | None = None,
        image: str | None = None,
        label: str | None = None,
        train_split: str = "train",
        validation_split: str | None = None,
        validation_fraction: OpenUnitInterval = 0.2,
        split_seed: NonNegativeInt = 0,
        streaming: bool = False,
    ) -> None:
        folder = Path(path).expanduser()
        self.local = folder if folder.is_dir() else None
        self.path = path
        known = path if self.local is None else folder.resolve().name
        self.name = known if subset is None else f"{known}, {subset}"
        self.subset = subset
        self.revision = revision
        self.columns = {"image": image, "label": label}
        self.train_split = train_split
        self.validation_split = validation_split
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed
        self.streaming = streaming
        self.cache: Path | None = None
        # What is loaded of each split: a `datasets.Dataset`; streaming, the locations of its files.
        self.loaded: Mapping[str, Any] = {}

    def prepare(self, cache: Path | None = None) -> None:
        """Fetch the data set, where it is not local and not fetched yet; streaming, find its files.

        Args:
            cache: The cache folder, which keeps the digests of photos in files that are not fetched.
        """
        self.cache = cache
        self.loaded = self._load()

    def splits(self) -> tuple[Photos, Photos | None]:
        """Return the training and the validation photos, those of the first labelled split where none is named."""
        if self.validation_split == self.train_split:
            raise UserError(f"validation_split: {self.train_split!r} is the training split; give another")
        self.loaded = self.loaded or self._load()
        train = self._photos("train_split", self.train_split)
        if self.validation_split is not None:
            return train, self._photos("validation_split", self.validation_split)
        others = (self._read(name) for name in VALIDATION_SPLITS if name in self.loaded and name != self.train_split)
        return train, next((photos for photos in others if _is_labelled(photos)), None)

    def _load(self) -> Mapping[str, Any]:
        """Load all splits, by their names."""
        try:
            datasets = import_module("datasets")
        except ImportError as error:
            raise UserError(
                f"path: Hugging Face data sets need a package ({error}); pip install 'headstart[datasets]'"
            ) from error

        try:
            if self.streaming:
                options = {"name": self.subset, "revision": self.revision}
                builder = datasets.load_dataset_builder(str(self.local or self.path), **options)
            elif self.local is not None and any((self.local / name).is_file() for name in SAVED):
                loaded = datasets.load_from_disk(str(self.local))
            else:
                loaded = datasets.load_dataset(str(self.local or self.path), self.subset, revision=self.revision)
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise UserError(
                f"path: {self.path} cannot be loaded ({reason_of(error)}); "
                "give a name on the Hugging Face Hub or a folder"
            ) from error

        if self.streaming:
            return self._parquet_files(builder.config.data_files or {})
        return {self.train_split: loaded} if isinstance(loaded, datasets.Dataset) else dict(loaded)

    def _parquet_files(self, found: Mapping[Any, Sequence[str]]) -> Mapping[str, list[str]]:
        """Return the locations of the files of all splits, by their names, which must be Parquet files."""
        files = {str(split): [*map(str, each)] for split, each in found.items()}
        if not files or not all(file.endswith(".parquet") for each in files.values() for file in each):
            raise UserError(f"streaming: {self.path} is not made of Parquet files; leave streaming out")
        return files

    def pictures(self) -> Photos:
        """Return the photos of all splits, one after the other, also those without a label."""
        self.loaded = self.loaded or self._load()
        if self.streaming:
            return self._stream([*self.loaded])
        parts = [dataset.select_columns([self._column(dataset, "image", "Image")]) for dataset in self.loaded.values()]
        joined = import_module("datasets").concatenate_datasets(parts)
        sizes = dict(zip(self.loaded, map(len, parts), strict=True))
        return HuggingFacePhotos(joined, joined.column_names[0], None, sizes)

    def _photos(self, option: str, split: str) -> Photos:
        if split not in self.loaded:
            raise UserError(f"{option}: {self.path} has no split {split!r}; it has {', '.join(self.loaded)}")
        photos = self._read(split)
        if not _is_labelled(photos):
            raise UserError(
                f"{option}: {self.path} has photos without a class in its split {split!r}; give another split"
            )
        return photos

    def _read(self, split: str) -> Photos:
        if self.streaming:
            photos = self._stream([split])
            if not photos.listed:
                raise UserError(f"label: {self.path} notes no column of type ClassLabel; leave streaming out")
            return photos
        dataset = self.loaded[split]
        image, label = self._column(dataset, "image", "Image"), self._column(dataset, "label", "ClassLabel")
        return HuggingFacePhotos(dataset, image, label, {split: len(dataset)})

    def _stream(self, splits: Sequence[str]) -> RowGroupPhotos:
        """Return the photos of splits in their files, under the names that they would have if they were fetched."""
        source = ParquetPhotos([file for split in splits for file in self.loaded[split]], **self.columns)
        source.prepare(self.cache)
        photos = source.pictures()
        sizes = iter(np.bincount(photos.file).tolist())
        photos.names = number({split: sum(next(sizes) for _ in self.loaded[split]) for split in splits})
        return photos

    def _column(self, dataset: Any, option: str, kind: str) -> str:  # noqa: ANN401 - of a package without types
        """Find the column of a type, or check the one that was named."""
        fitting: list[str] = [name for name, feature in dataset.features.items() if type(feature).__name__ == kind]
        named = self.columns[option]
        chosen = [name for name in fitting if named in (None, name)]
        if len(chosen) == 1:
            return chosen[0]
        listed = f"its columns of type {kind} are {', '.join(fitting)}"
        columns = listed if fitting else f"it has no column of type {kind}"
        problem = f"no column {named!r} of type {kind}" if named else "not one column to take"
        raise UserError(f"{option}: {self.path} has {problem}; {columns}")


class HuggingFacePhotos(Photos):
    """Photos of splits, as their files' bytes.

    Args:
        dataset: The photos, a `datasets.Dataset`.
        image: Its column of photos.
        label: Its column of classes; None for photos without.
        sizes: Number of photos of each split, one after the other, by its name.
    """

    has_small_parts = True

    def __init__(self, dataset: Any, image: str, label: str | None, sizes: Mapping[str, int]) -> None:  # noqa: ANN401 - see above
        column = dataset.features[image]
        undecoded = type(column)(mode=column.mode, decode=False)
        self.dataset = dataset.select_columns([image]).cast_column(image, undecoded)
        self.image = image
        labels = [None] * len(dataset) if label is None else dataset.select_columns([label]).with_format(None)[:][label]
        self.labels = np.array([-1 if each is None else each for each in labels], dtype=np.int64)
        self.names: LazyNames = number(sizes)
        self.classes = () if label is None else tuple(dataset.features[label].names)
        self._known: dict[int, str] = {}

    def read(self, index: int) -> Image.Image:
        """Decode one photo."""
        content, path = self._cell(index)
        return decode(read_digested(path, self._known.get(index)) if content is None else io.BytesIO(content))

    def digest(self, index: int) -> str:
        """Digest the bytes of one photo."""
        content, path = self._cell(index)
        if content is not None:
            return hashlib.sha256(content).hexdigest()
        if index not in self._known:
            self._known[index] = digest_file(Path(path))
        return self._known[index]

    def part(self, indices: NDArray[np.int64]) -> HuggingFacePhotos:
        """Return some photos on their own: their data set is pickled as the paths of its files, which are mapped."""
        photos = copy.copy(self)
        photos.dataset = self.dataset.select(indices)
        photos.labels = self.labels[indices]
        photos.names = self.names.take(indices)
        photos._known = {new: self._known[old] for new, old in enumerate(indices.tolist()) if old in self._known}
        photos._digested = None
        return photos

    def _cell(self, index: int) -> tuple[bytes | None, str]:
        """Return the bytes of one photo, or the path of its file; a cell may be empty."""
        cell = self.dataset[index][self.image] or {"bytes": b"", "path": ""}
        return cell["bytes"], cell["path"]


def _is_labelled(photos: Photos) -> bool:
    """Whether every photo has a class."""
    return bool((photos.labels >= 0).all())

"""Image classification data sets that the package datasets reads: of the Hugging Face Hub, local ones, or at URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.hugging_face_files import (
    METADATA,
    PHOTOS,
    VALIDATION_SPLITS,
    find_files,
    literal,
    require_all_used,
)
from headstart.datamodules.photos.hugging_face_photos import HuggingFacePhotos, read_labels
from headstart.datamodules.photos.photo_source import Photos, SplitSource, require_same_classes
from headstart.output.errors import UserError, reason_of
from headstart.output.seeds import Seed

# Files that `save_to_disk` writes of several splits and of one.
SAVED = ("dataset_dict.json", "state.json")
# Type of columns for labels, and names of others that hold them: those in most data sets and in tar shards.
LABEL = "ClassLabel"
LABEL_NAMES = ("label", "cls")
# Types of columns for pictures; the first that there is.
PICTURES = ("Image", "binary")


class HuggingFaceDataset(SplitSource):
    """An image classification data set that the package datasets reads.

    It is on the Hugging Face Hub, in a folder, or in files: Parquet files or tar shards of the package webdataset, on
    the disk or at URLs. The package stores what it reads in HF_HOME.

    Args:
        path: Name on the Hub, such as microsoft/cats_vs_dogs, or a folder. The folder is the output of `save_to_disk`,
            or holds Parquet files, tar shards, or photos by split and class. With `data_files`, also their format:
            parquet, webdataset or imagefolder.
        data_files: Files of the training photos: paths or URLs with wildcards, one or a list. Or a mapping from splits
            to them. The default is all files.
        subset: Name of the subset, if there are several.
        revision: Commit, branch or tag on the Hub. The default is the newest version.
        image: Column of the photos. The default is the only column of type Image, else of bytes.
        label: Column of the classes, of any type, or a value in a column, such as json.label. The default is the only
            column of type ClassLabel, else the column label or cls.
        train_split: Split of the training photos.
        validation_split: Split of the validation photos. The default is the first of validation, valid, val, dev and
            test that has a class for every photo. Without one, a seeded part of the training split is held out.
        validation_fraction: Share of each class that is held out without a validation split.
        split_seed: Seed of that split.
    """

    def __init__(
        self,
        path: str,
        data_files: dict[str, list[str] | str] | list[str] | str | None = None,
        subset: str | None = None,
        revision: str | None = None,
        image: str | None = None,
        label: str | None = None,
        train_split: str = "train",
        validation_split: str | None = None,
        validation_fraction: OpenUnitInterval = 0.2,
        split_seed: Seed = 0,
    ) -> None:
        folder = Path(path).expanduser()
        self.local = folder if folder.is_dir() else None
        self.path = path
        self.data_files = data_files
        self.name = _name(path, folder, data_files) + ("" if subset is None else f", {subset}")
        self.subset = subset
        self.revision = revision
        self.image = image
        self.label = label
        self.train_split = train_split
        self.validation_split = validation_split
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed
        # Each split that is loaded, a `datasets.Dataset`.
        self.loaded: Mapping[str, Any] = {}
        self.left_out: Mapping[str, str] = {}

    def prepare(self, cache: Path | None = None) -> None:
        """Fetch the data set, where it is not local and not fetched yet.

        Args:
            cache: The cache folder, which is not used: the package has its own.
        """
        self.loaded = self.loaded or self._load()

    def splits(self) -> tuple[Photos, Photos | None]:
        """Return the training and the validation photos, those of the first labelled split where none is named."""
        if self.validation_split == self.train_split:
            raise UserError(f"validation_split: {self.train_split!r} is the training split; give another")
        self.prepare()
        train = self._photos("train_split", self.train_split)
        named = self.validation_split
        validation = self._first_labelled() if named is None else self._photos("validation_split", named)

        if validation is not None:
            require_same_classes("label", train, validation)
        return train, validation

    def pictures(self) -> Photos:
        """Return the photos of all splits, one after the other, also those without a label."""
        self.prepare()
        datasets = import_module("datasets")
        images = {split: self._image(dataset) for split, dataset in self.loaded.items()}
        parts = [self.loaded[split].select_columns([image]) for split, image in images.items()]
        sizes = dict(zip(images, map(len, parts), strict=True))
        joined = datasets.concatenate_datasets(parts)
        return HuggingFacePhotos(joined, joined.column_names[0], [-1] * len(joined), (), sizes, self.left_out)

    def _load(self) -> Mapping[str, Any]:
        """Load all splits, by their names."""
        try:
            datasets = import_module("datasets")
        except ImportError as error:
            raise UserError(
                f"path: Hugging Face data sets need a package ({error}); pip install 'headstart[datasets]'"
            ) from error

        try:
            loaded = self._loaded_by(datasets)
        except UserError:
            raise
        # The package's readers raise errors of many kinds.
        except Exception as error:
            raise UserError(
                f"path: {self.path} cannot be loaded ({reason_of(error)}); give a name on the Hugging Face Hub, a "
                "folder, or a format and data_files"
            ) from error
        return {self.train_split: loaded} if isinstance(loaded, datasets.Dataset) else dict(loaded)

    def _loaded_by(self, datasets: Any) -> Any:  # noqa: ANN401 - a package without types
        if self.data_files is not None:
            path, options = str(self.local or self.path), {"data_files": self.data_files}
            builder = datasets.load_dataset_builder(path, self.subset, revision=self.revision, **options)
            loaded = datasets.load_dataset(path, self.subset, revision=self.revision, **options)
            return self._require_all_read(loaded, builder.config.data_files) if self.path == PHOTOS else loaded
        if self.local is None:
            builder = datasets.load_dataset_builder(self.path, self.subset, revision=self.revision)
            if self.subset is None and builder.config.data_files:
                require_all_used(self.path, self.revision, builder.config.data_files)
            return datasets.load_dataset(self.path, self.subset, revision=self.revision)
        if any((self.local / name).is_file() for name in SAVED):
            return datasets.load_from_disk(str(self.local))
        return self._load_folder(datasets, self.local)

    def _load_folder(self, datasets: Any, folder: Path) -> Any:  # noqa: ANN401 - a package without types
        """Load all files of a folder, whatever they are called, and compare their number where each is a photo."""
        form, files, self.left_out = find_files(folder)
        with_metadata = any(Path(name).name.startswith("metadata.") for names in files.values() for name in names)
        options = {"drop_labels": with_metadata} if form == PHOTOS else {}
        loaded = datasets.load_dataset(form, data_files=literal(files, folder), **options)
        return self._require_all_read(loaded, files) if form == PHOTOS else loaded

    def _require_all_read(self, loaded: Any, files: Mapping[Any, Sequence[str]]) -> Any:  # noqa: ANN401 - a package without types
        """Return photos that were read from files, of which each is one."""
        photos = [name for names in files.values() for name in names if Path(name).name not in METADATA]
        read = sum(map(len, loaded.values()))
        if len(photos) != read:
            raise UserError(
                f"path: {self.path} has {len(photos)} photos, of which the package datasets reads {read}; "
                "use UnsplitClassFolders, which reads them all, or name all in the metadata"
            )
        return loaded

    def _first_labelled(self) -> Photos | None:
        """Return the photos of the first split for validation in which all have a class, if there is one."""
        names = [name for name in VALIDATION_SPLITS if name in self.loaded and name != self.train_split]
        return next((photos for photos in map(self._read, names) if _is_labelled(photos)), None)

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
        dataset = self.loaded[split]
        image, label = self._image(dataset), self._label(dataset)
        labels, classes = read_labels(dataset, label)
        return HuggingFacePhotos(dataset, image, labels, classes, {split: len(dataset)}, self.left_out)

    def _image(self, dataset: Any) -> str:  # noqa: ANN401 - of a package without types
        """Find the column of the photos, or check the one that was named."""
        types = {name: _type(feature) for name, feature in dataset.features.items()}
        by_type = {kind: [name for name in types if types[name] == kind] for kind in PICTURES}
        fitting = next(filter(None, by_type.values()), [])
        named = self.image if self.image in [*by_type["Image"], *by_type["binary"]] else None
        image = named or self._only("image", self.image, fitting, "Image")

        # A shard's columns are the endings of its first samples.
        if dataset.builder_name == "webdataset" and (empty := dataset.data.column(image).null_count):
            raise UserError(
                f"image: {empty} of {len(dataset)} samples of {self.path} have no member {image}; give all pictures "
                "one ending"
            )
        return image

    def _label(self, dataset: Any) -> str:  # noqa: ANN401 - of a package without types
        """Find the column of the classes, or check the one that was named."""
        if self.label is not None and self.label.partition(".")[0] in dataset.features:
            return self.label
        fitting = [name for name, feature in dataset.features.items() if _type(feature) == LABEL]
        fitting = fitting or [name for name in LABEL_NAMES if name in dataset.features][:1]
        return self._only("label", self.label, fitting, LABEL)

    def _only(self, option: str, named: str | None, fitting: list[str], kind: str) -> str:
        if named is None and len(fitting) == 1:
            return fitting[0]
        columns = f"it has no column of type {kind}"
        if fitting:
            columns = f"its columns of type {kind} are {', '.join(fitting)}"
        problem = f"no column {named!r}" if named else "not one column to take"
        raise UserError(f"{option}: {self.path} has {problem}; {columns}")


def _name(path: str, folder: Path, data_files: Any) -> str:  # noqa: ANN401 - files in any form
    """Return the name of a data set: that on the Hub or of its folder, with files that of the first one's folder."""
    if folder.is_dir():
        return folder.resolve().name
    while data_files and not isinstance(data_files, str):
        data_files = next(iter(data_files.values() if isinstance(data_files, dict) else data_files))
    if not data_files:
        return path
    location = data_files if "://" in data_files else str(Path(data_files).absolute())
    return re.sub(r"[*?\[].*", "", location).split("/")[-2]


def _type(feature: Any) -> str:  # noqa: ANN401 - of a package without types
    """Return the type of a column: that of a value, or the class of a feature."""
    return str(getattr(feature, "dtype", "")) if type(feature).__name__ == "Value" else type(feature).__name__


def _is_labelled(photos: Photos) -> bool:
    """Return whether every photo has a class."""
    return bool((photos.labels >= 0).all())

"""Photos of cats and dogs, from one folder per class or from Kaggle's flat folder."""

import re
from pathlib import Path

import numpy as np
from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.class_folders import find_base, read_class_folders
from headstart.datamodules.photos.download import ZipSource
from headstart.datamodules.photos.folder_listing import join, read_folder, read_nested
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, hold_out
from headstart.output.errors import UserError, prefix_errors
from headstart.output.seeds import Seed

CLASSES = ("cats", "dogs")
PUBLIC_ZIP = "https://storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip"
_FLAT_NAME = re.compile(r"(cat|dog)\.[0-9]+\.[a-z]+", re.IGNORECASE)


class CatsAndDogs(ZipSource):
    """Cats (class 0) and dogs (class 1) in one of two layouts, whichever is there.

    In the public archive, `train/` and `validation/` each hold `cats/` and `dogs/`. In Kaggle's archive, `train/` holds
    photos named like `cat.0.jpg`, and a part of them is split off for validation.

    Args:
        root: Folder that holds train/, or whose only subfolder does. The default is a folder in the cache.
        download: Download the archive and unpack it into the root, if the root is missing or empty.
        url: Address of the archive.
        sha256: SHA-256 of the archive. Another digest raises an error. By default it is not checked.
        validation_fraction: Share of each class that is split off for validation, in Kaggle's layout only.
        split_seed: Seed of that split.
    """

    name = "cats_and_dogs"

    def __init__(
        self,
        root: str | None = None,
        download: bool = False,
        url: str = PUBLIC_ZIP,
        sha256: str | None = None,
        validation_fraction: OpenUnitInterval = 1 / 3,
        split_seed: Seed = 0,
    ) -> None:
        super().__init__(root, "datasets/cats_and_dogs_filtered", download, url, sha256)
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos in the layout that is there."""
        base = find_base(self.root)
        train = base / "train"
        in_folders = any((train / name).is_dir() for name in CLASSES)
        photos, folders, others = read_folder(train)
        flat = any(_FLAT_NAME.fullmatch(photo) for photo in photos)
        if in_folders and not flat:
            return read_class_folders(base, CLASSES)
        if flat and not in_folders:
            left_out = {join("train", name): kind for name, kind in others.items()}
            for folder in folders:
                left_out |= read_nested(train / folder, join("train", folder))
            return self._split_flat(base, photos, left_out)
        raise UserError(
            f"root: {train} must hold either the folders cats/ and dogs/ or photos named like "
            f"cat.0.jpg; it holds {'both' if flat else 'neither'}"
        )

    def _split_flat(self, base: Path, photos: list[str], left_out: dict[str, str]) -> tuple[Photos, Photos]:
        strange = [photo for photo in photos if not _FLAT_NAME.fullmatch(photo)]
        if strange:
            raise UserError(
                f"root: {base / 'train'} must hold photos named like cat.0.jpg or dog.0.jpg; "
                f"{len(strange)} have another name ({strange[0]}), move them elsewhere"
            )
        photos = sorted(photos, key=_label)
        names, labels = [f"train/{photo}" for photo in photos], [_label(photo) for photo in photos]
        whole = PhotoFiles(base, names, labels, CLASSES, left_out)
        with prefix_errors(f"root: {base / 'train'}"):
            is_held_out = hold_out(photos, whole.labels, CLASSES, self.validation_fraction, self.split_seed)
        return whole.subset(np.flatnonzero(~is_held_out)), whole.subset(np.flatnonzero(is_held_out))


def _label(photo: str) -> int:
    return int(photo.lower().startswith("dog"))

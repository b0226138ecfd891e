"""Photos in one folder per class, without a split for validation."""

from __future__ import annotations

from pathlib import Path

from jsonargparse.typing import NonNegativeInt, OpenUnitInterval

from datamodules.photos.class_folders import read_split, require_folder, subfolders
from datamodules.photos.held_out import split_photos
from datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource
from output.errors import UserError


class UnsplitClassFolders(PhotoSource):
    """Photos in `<class>/`, of which a seeded part may be held out for validation.

    Args:
        root: Folder that holds a folder of photos for each of two or more classes. Its name is the data set's name in
            the results.
        validation_fraction: Share of each class that is held out for validation; by default all photos are for
            training, which will do for what needs no others.
        split_seed: Seed of that split.
    """

    def __init__(
        self, root: str, validation_fraction: OpenUnitInterval | None = None, split_seed: NonNegativeInt = 0
    ) -> None:
        self.root = Path(root).expanduser()
        self.name = self.root.resolve().name
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def train(self) -> Photos:
        """List the photos that are not held out."""
        if self.validation_fraction is None:
            return self._read()
        return split_photos(self._read(), self.validation_fraction, self.split_seed)[0]

    def validation(self) -> Photos:
        """List the photos that are held out."""
        if self.validation_fraction is None:
            raise UserError(
                f"validation_fraction: nothing is given, so that all photos of {self.root} are for training; "
                "give a share to hold out, such as 0.2"
            )
        return split_photos(self._read(), self.validation_fraction, self.split_seed)[1]

    def _read(self) -> PhotoFiles:
        require_folder(self.root, "give the folder that holds one per class")
        classes = [folder.name for folder in subfolders(self.root)]
        if len(classes) < 2:
            raise UserError(
                f"root: {self.root} must hold a folder of photos for each of two or more classes; "
                f"it holds {', '.join(classes) or 'none'}"
            )
        return read_split(self.root, self.root, classes)

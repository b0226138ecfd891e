"""Photos in one folder per class, without a split for validation."""

from __future__ import annotations

from pathlib import Path

from jsonargparse.typing import NonNegativeInt, OpenUnitInterval

from headstart.datamodules.photos.class_folders import read_split, require_folder
from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.photo_source import Photos


class UnsplitClassFolders(SplitSource):
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

    def splits(self) -> tuple[Photos, None]:
        """List all photos."""
        require_folder(self.root, "give the folder that holds one per class")
        return read_split(self.root, self.root), None

"""Photos in one folder per class, without a split for validation."""

from __future__ import annotations

from pathlib import Path

from datamodules.photos.class_folders import read_split, require_folder, subfolders
from datamodules.photos.photo_source import PhotoFiles, PhotoSource
from output.errors import UserError


class UnsplitClassFolders(PhotoSource):
    """Photos in `<class>/`, all of them for training; for what needs no validation photos.

    Args:
        root: Folder that holds a folder of photos for each of two or more classes. Its name is the data set's name in
            the results.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(root).expanduser()
        self.name = self.root.resolve().name

    def train(self) -> PhotoFiles:
        """List all photos."""
        require_folder(self.root, "give the folder that holds one per class")
        classes = [folder.name for folder in subfolders(self.root)]
        if len(classes) < 2:
            msg = (
                f"root: {self.root} must hold a folder of photos for each of two or more classes; "
                f"it holds {', '.join(classes) or 'none'}"
            )
            raise UserError(msg)
        return read_split(self.root, self.root, classes)

    def validation(self) -> PhotoFiles:
        """Refuse: there are none."""
        msg = f"root: {self.root} has training photos only; lay it out for ClassFolders to hold some out"
        raise UserError(msg)

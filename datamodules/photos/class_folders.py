"""Photos in one folder per class."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.folder_listing import list_classes, list_kinds, read_folder, require_folder
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, SplitSource
from headstart.output.errors import UserError
from headstart.output.seeds import Seed

VALIDATION_FOLDERS = ("validation", "val")


class ClassFolders(SplitSource):
    """Photos in `train/<class>/` and in `validation/<class>/` or `val/<class>/`.

    The classes are numbered in the order of their names. Both splits must have the same classes. All formats that
    Pillow decodes are read. Other files are left out and counted, except hidden ones.

    Args:
        root: Folder that holds train/ and validation/. Its name is the data set's name in the results.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(root).expanduser()
        self.name = self.root.resolve().name

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos in train/ and validation/."""
        require_folder(self.root, "give the folder that holds train/ and validation/")
        return read_class_folders(self.root)


class UnsplitClassFolders(SplitSource):
    """Photos in `<class>/`. A random part of them may be held out for validation.

    Args:
        root: Folder that holds a folder of photos for each class. Its name is the data set's name in the results.
        validation_fraction: Share of each class that is held out for validation. By default all photos are for
            training.
        split_seed: Seed of the random split.
    """

    def __init__(self, root: str, validation_fraction: OpenUnitInterval | None = None, split_seed: Seed = 0) -> None:
        self.root = Path(root).expanduser()
        self.name = self.root.resolve().name
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, None]:
        """List all photos; those for validation are held out of them later."""
        require_folder(self.root, "give the folder that holds the class folders")
        return read_split(self.root, ""), None


def read_class_folders(root: Path, classes: Sequence[str] = ()) -> tuple[Photos, Photos]:
    """List the photos of both splits, without decoding them.

    Args:
        root: Folder that holds the splits' folders.
        classes: Names of the class folders in the order of the class indices; by default those in train/ with photos.

    Returns:
        The training and the validation photos.

    Raises:
        UserError: A split is missing, there is only one class, or a split has a class that the other lacks.
    """
    folders = read_folder(root).folders
    validation = [name for name in VALIDATION_FOLDERS if name in folders]
    if "train" not in folders or len(validation) != 1:
        listed = ", ".join(f"{name}/" for name in folders) or "no folder"
        raise UserError(f"root: {root} must hold train/ and either validation/ or val/; it holds {listed}")
    photos = read_split(root, "train", classes)
    return photos, read_split(root, validation[0], photos.classes)


def read_split(root: Path, split: str, classes: Sequence[str] = ()) -> PhotoFiles:
    """List the photos of one split, without decoding them. Class folders without photos are left out.

    Args:
        root: Folder that the photos' names are relative to.
        split: Name of the folder that holds the class folders; empty for the root itself.
        classes: Names of the class folders in the order of the class indices; by default those with photos.

    Returns:
        The photos.

    Raises:
        UserError: There are fewer than two classes, or the classes are not those in `classes`.
    """
    photos, left_out = list_classes(root, split)
    wanted = tuple(classes) or tuple(photos)
    if set(photos) != set(wanted) or len(wanted) < 2:
        needed = f"photos of exactly the classes {', '.join(classes)}" if classes else "photos of two or more classes"
        found = f"those with photos are {', '.join(photos) or 'none'}"
        omitted = f"; left out: {list_kinds(left_out)}" if left_out else ""
        raise UserError(f"root: {root / split} must hold {needed} in a folder each; {found}{omitted}")

    names = [name for class_name in wanted for name in photos[class_name]]
    labels = [label for label, class_name in enumerate(wanted) for _ in photos[class_name]]
    return PhotoFiles(root, names, labels, wanted, left_out)

"""Photos in one folder per class."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse.typing import NonNegativeInt, OpenUnitInterval

from headstart.datamodules.photos.folder_listing import (
    FOLDER,
    STRAY,
    SUFFIXES,
    Listing,
    count_kinds,
    list_kinds,
    read_folder,
    require_folder,
)
from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.locations import is_remote
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.output.errors import UserError

VALIDATION_FOLDERS = ("validation", "val")


class FolderSource(SplitSource):
    """Photos in a folder, on the disk or at a URL.

    Args:
        root: The folder.
    """

    def __init__(self, root: str) -> None:
        self.root: str | Path = root if is_remote(root) else Path(root).expanduser()
        self.name = Path(root.rstrip("/")).name if is_remote(root) else Path(self.root).resolve().name

    def require_root(self, remedy: str) -> None:
        """Raise a UserError, with what the user can do, if the root is missing; a URL is not asked for."""
        if isinstance(self.root, Path):
            require_folder(self.root, remedy)


class ClassFolders(FolderSource):
    """Photos in `train/<class>/` and `validation/<class>/`; or `val/<class>/`.

    The classes are numbered in the order of their names, which must be the same in both splits. Photos end in .jpg,
    .jpeg, .jfif, .png, .webp or .bmp. Other files are left out and counted, except for hidden ones.

    Args:
        root: Folder that holds train/ and validation/, or its URL, such as `s3://bucket/folder`. Its name is the data
            set's name in the results.
    """

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos in train/ and validation/."""
        self.require_root("give the folder that holds train/ and validation/")
        return read_class_folders(self.root)


class UnsplitClassFolders(FolderSource):
    """Photos in `<class>/`, of which a seeded part may be held out for validation.

    Args:
        root: Folder that holds a folder of photos for each class, or its URL, such as `s3://bucket/folder`. Its name is
            the data set's name in the results.
        validation_fraction: Share of each class that is held out for validation. By default all photos are for
            training.
        split_seed: Seed of that split.
    """

    def __init__(
        self, root: str, validation_fraction: OpenUnitInterval | None = None, split_seed: NonNegativeInt = 0
    ) -> None:
        super().__init__(root)
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, None]:
        """List all photos."""
        self.require_root("give the folder that holds one per class")
        return read_split(Listing(self.root), ""), None


def find_base(root: Path) -> Path:
    """Find the folder that holds train/ in the root of a data set that can be downloaded.

    Args:
        root: The root.

    Returns:
        The root itself or its one subfolder that does.

    Raises:
        UserError: There is none, or more than one.
    """
    require_folder(root, "give the folder that holds the photos, or fetch them with download=true")
    if (root / "train").is_dir():
        return root
    bases = [root / name for name in read_folder(root).folders if (root / name / "train").is_dir()]
    if len(bases) != 1:
        raise UserError(
            f"root: {root} must hold train/, itself or in one of its folders, of which "
            f"{len(bases)} do; download=true fills a missing or empty folder only"
        )
    return bases[0]


def read_class_folders(root: str | Path, classes: Sequence[str] = ()) -> tuple[Photos, Photos]:
    """List the photos of both splits, decoding none.

    Args:
        root: Folder that holds the splits' folders, or its URL.
        classes: Names of the class folders, the first being class 0; by default those in train/.

    Returns:
        The training and the validation photos.

    Raises:
        UserError: A split or class folder is missing or empty. Or there is one class only, or a split has a class that
            the other lacks.
    """
    listing = Listing(root)
    folders = listing.folder().folders
    validation = [name for name in VALIDATION_FOLDERS if name in folders]
    if "train" not in folders or len(validation) != 1:
        there = ", ".join(f"{name}/" for name in folders) or "no folder"
        raise UserError(f"root: {listing.root} must hold train/ and either validation/ or val/; it holds {there}")
    photos = read_split(listing, "train", classes)
    return photos, read_split(listing, validation[0], photos.classes)


def read_split(listing: Listing, split: str, classes: Sequence[str] = ()) -> PhotoFiles:
    """List the photos of one folder of class folders, decoding none.

    Args:
        listing: Content of the folder that the photos' names are relative to.
        split: Name of the folder of class folders; empty for the listed one itself.
        classes: Names of the class folders, the first being class 0; by default those that are there.

    Returns:
        The photos.

    Raises:
        UserError: There is one class only, there are other class folders than these, or one has no photos.
    """
    top = listing.folder(split)
    needed = f"exactly the class folders {', '.join(classes)}"
    if not classes:
        needed = "a folder of photos for each of two or more classes"
        classes = top.folders
    if set(top.folders) != set(classes) or len(classes) < 2:
        there = ", ".join(top.folders) or "none"
        raise UserError(f"root: {listing.location(split)} must hold {needed}; it holds {there}")

    names: list[str] = []
    labels: list[int] = []
    left_out = {_join(split, name): kind for name, kind in (top.others | dict.fromkeys(top.photos, STRAY)).items()}
    for label, title in enumerate(classes):
        name = _join(split, title)
        photos, folders, others = listing.folder(name)
        others |= dict.fromkeys(folders, FOLDER)
        if not photos:
            instead = list_kinds(count_kinds(others)) or "none"
            raise UserError(
                f"root: {listing.location(name)} must hold photos ({', '.join(SUFFIXES)}); it holds {instead}"
            )

        left_out |= {f"{name}/{other}": kind for other, kind in others.items()}
        names += [f"{name}/{photo}" for photo in photos]
        labels += [label] * len(photos)

    found = PhotoFiles(listing.root, names, labels, classes, left_out)
    found.listed = [listing.states[name] for name in names] if listing.states else []
    return found


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name

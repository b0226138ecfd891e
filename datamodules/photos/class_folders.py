"""Photos in one folder per class, and the listing that all folders of photos share."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from jsonargparse.typing import NonNegativeInt, OpenUnitInterval

from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.output.errors import UserError
from headstart.output.printable import say

# The endings of torchvision's ImageFolder and .jfif, without formats whose pixels may have more than eight bits.
SUFFIXES = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp")
VALIDATION_FOLDERS = ("validation", "val")
PHOTO, FOLDER, DANGLING, STRAY = "photo", "folder", "dangling link", "stray photo"


class ClassFolders(SplitSource):
    """Photos in `train/<class>/` and `validation/<class>/`; or `val/<class>/`.

    The classes are numbered in the order of their names, which must be the same in both splits. Photos end in .jpg,
    .jpeg, .jfif, .png, .webp or .bmp. Other files are left out and counted, except for hidden ones.

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

    def files(self) -> list[Path]:
        """Return the root."""
        return [self.root]


class UnsplitClassFolders(SplitSource):
    """Photos in `<class>/`, of which a seeded part may be held out for validation.

    Args:
        root: Folder that holds a folder of photos for each of two or more classes. Its name is the data set's name in
            the results.
        validation_fraction: Share of each class that is held out for validation; by default all photos are for
            training, which suffices where no others are needed.
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

    def files(self) -> list[Path]:
        """Return the root."""
        return [self.root]


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
    bases = [folder for folder in subfolders(root) if (folder / "train").is_dir()]
    if len(bases) != 1:
        raise UserError(
            f"root: {root} must hold train/, itself or in one of its folders, of which "
            f"{len(bases)} do; download=true fills a missing or empty folder only"
        )
    return bases[0]


def read_class_folders(root: Path, classes: Sequence[str] = ()) -> tuple[Photos, Photos]:
    """List the photos of both splits, decoding none.

    Args:
        root: Folder that holds the splits' folders.
        classes: Names of the class folders, the first being class 0; by default those in train/.

    Returns:
        The training and the validation photos.

    Raises:
        UserError: A split or class folder is missing or empty, there is one class only, or a
            split has a class that the other lacks.
    """
    train = root / "train"
    validation = [root / name for name in VALIDATION_FOLDERS if (root / name).is_dir()]
    if not train.is_dir() or len(validation) != 1:
        folders = ", ".join(f"{folder.name}/" for folder in subfolders(root)) or "no folder"
        raise UserError(f"root: {root} must hold train/ and either validation/ or val/; it holds {folders}")
    photos = read_split(root, train, classes)
    return photos, read_split(root, validation[0], photos.classes)


def read_split(root: Path, split: Path, classes: Sequence[str] = ()) -> PhotoFiles:
    """List the photos of one folder of class folders, decoding none.

    Args:
        root: Folder that the photos' names are relative to.
        split: The folder, which may be the root itself.
        classes: Names of the class folders, the first being class 0; by default those that are there.

    Returns:
        The photos.

    Raises:
        UserError: There is one class only, there are other class folders than these, or one has no photos.
    """
    folders = [folder.name for folder in subfolders(split)]
    needed = f"exactly the class folders {', '.join(classes)}"
    if not classes:
        needed = "a folder of photos for each of two or more classes"
        classes = folders
    if set(folders) != set(classes) or len(folders) < 2:
        raise UserError(f"root: {split} must hold {needed}; it holds {', '.join(folders) or 'none'}")

    names: list[str] = []
    labels: list[int] = []
    left_out = {split / name: kind for name, kind in list_others(split).items() if kind != FOLDER}
    left_out |= dict.fromkeys((split / name for name in list_photos(split)), STRAY)
    for label, folder in enumerate(split / name for name in classes):
        photos, others = list_photos(folder), list_others(folder)
        if not photos:
            instead = list_kinds(count_kinds(others)) or "none"
            raise UserError(f"root: {folder} must hold photos ({', '.join(SUFFIXES)}); it holds {instead}")

        left_out |= {folder / name: kind for name, kind in others.items()}
        names += [(folder / photo).relative_to(root).as_posix() for photo in photos]
        labels += [label] * len(photos)

    others = {path.relative_to(root).as_posix(): kind for path, kind in left_out.items()}
    return PhotoFiles(root, names, labels, classes, others)


def require_folder(folder: Path, remedy: str) -> None:
    """Raise a UserError, with what the user can do, if the root of a data set is missing."""
    # A name that is too long for the file system is an OSError.
    with suppress(OSError):
        if folder.is_dir():
            return
    raise UserError(f"root: there is no folder {folder}; {remedy}")


def list_photos(folder: Path) -> list[str]:
    """List the names of the photos in a folder, numbers in the order of their values.

    Args:
        folder: The folder; what lies in its subfolders is not listed.

    Returns:
        File names, in an order that does not depend on the file system.
    """
    return sorted((name for name, kind in _kinds(folder).items() if kind == PHOTO), key=in_order)


def list_others(folder: Path) -> dict[str, str]:
    """Return the kinds of all but photos and hidden files in a folder, by name: the endings of files, or `folder`."""
    return {name: kind for name, kind in _kinds(folder).items() if kind != PHOTO}


def subfolders(folder: Path) -> list[Path]:
    """List the folders in a folder, without hidden ones, in the order of their names."""
    names = (name for name, kind in _kinds(folder).items() if kind == FOLDER)
    return [folder / name for name in sorted(names, key=in_order)]


def count_kinds(others: Mapping[str, str]) -> dict[str, int]:
    """Count kinds of files, given by name; the most frequent kind comes first."""
    return dict(sorted(Counter(others.values()).items(), key=lambda pair: (-pair[1], pair[0])))


def list_kinds(counts: Mapping[str, int]) -> str:
    """Return counts of kinds as text: `8 .gif, 4 dangling links`."""
    return ", ".join(f"{n} {kind}{'s' * (n > 1 and kind in (FOLDER, DANGLING, STRAY))}" for kind, n in counts.items())


def report_left_out(left_out: Mapping[str, str]) -> dict[str, int]:
    """Print how many files are left out, if any, and return how many there are of each kind.

    Args:
        left_out: Their kinds, by name.
    """
    counts = count_kinds(left_out)
    if left_out:
        say(f"data.photos: {len(left_out)} files left out: {list_kinds(counts)}")
    return counts


def _kinds(folder: Path) -> dict[str, str]:
    """Return the kind of everything in a folder that is not hidden, by name."""
    try:
        return {path.name: _kind(path) for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError as error:
        raise UserError(
            f"root: {folder} cannot be read ({error.strerror}); make it readable or give another folder"
        ) from error


def _kind(path: Path) -> str:
    if not path.is_file():
        return FOLDER if path.is_dir() else DANGLING if path.is_symlink() else "no file"
    ending = path.suffix.lower()
    return PHOTO if ending in SUFFIXES else ending or "without an ending"


def in_order(name: str) -> tuple[list[str | int], str]:
    """Return the key by which names are sorted: numbers in the order of their values."""
    # The pattern's group makes every second part a number, so that parts at the same position have the same type.
    parts = re.split("([0-9]+)", name)
    return [int(part) if position % 2 else part for position, part in enumerate(parts)], name

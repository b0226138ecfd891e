"""The content of folders, on the disk or at a URL: photos, folders and other files; hidden ones are left out."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from typing import NamedTuple

from headstart.datamodules.photos.locations import in_order, is_remote, join, list_below
from headstart.output.errors import UserError
from headstart.output.printable import say

# The endings of torchvision's ImageFolder and .jfif, without formats whose pixels may have more than eight bits.
SUFFIXES = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp")
PHOTO, FOLDER, DANGLING, STRAY = "photo", "folder", "dangling link", "stray photo"


class Folder(NamedTuple):
    """The content of a folder, without that of its folders.

    Attributes:
        photos: Names of the photos, numbers in the order of their values.
        folders: Names of the folders, likewise.
        others: Kinds of other files, by name: their endings in most cases.
    """

    photos: list[str]
    folders: list[str]
    others: dict[str, str]


class Listing:
    """A folder and all folders below it; a remote one is listed in one request.

    Args:
        root: The folder's path or URL.

    Attributes:
        states: States of remote files, by name relative to the root; see `locations.state_of`.

    Raises:
        UserError: A remote folder cannot be listed, or holds nothing.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = str(root).rstrip("/") if is_remote(root) else str(root)
        self.states: dict[str, str] = {}
        if is_remote(root):
            self._remote = self._list_remote()

    def location(self, name: str) -> str:
        """Return the path or URL of a folder, for messages.

        Args:
            name: Its name relative to the root, with forward slashes; empty for the root itself.
        """
        return join(self.root, name) if name else self.root

    def folder(self, name: str = "") -> Folder:
        """Return what lies in a folder.

        Args:
            name: As for `location`.

        Raises:
            UserError: It cannot be read.
        """
        if is_remote(self.root):
            return _sort(self._remote[name])
        return read_folder(self.location(name))

    def _list_remote(self) -> Mapping[str, dict[str, str]]:
        """Return the kinds of everything that is not hidden, by folder and by name."""
        try:
            self.states = list_below(self.root)
        except OSError as error:
            raise UserError(f"root: {self.root} cannot be listed ({error.strerror})") from error
        if not self.states:
            raise UserError(f"root: there are no files below {self.root}; give another folder")

        kinds: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for path in self.states:
            *folders, file = path.split("/")
            if any(part.startswith(".") for part in (*folders, file)):
                continue
            kinds["/".join(folders)][file] = _kind_of_file(file)
            for depth, folder in enumerate(folders):
                kinds["/".join(folders[:depth])][folder] = FOLDER
        return kinds


def read_folder(path: str | Path) -> Folder:
    """Return what lies in a folder on the disk.

    Args:
        path: The folder.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with os.scandir(path) as entries:
            return _sort({entry.name: _kind(entry) for entry in entries if not entry.name.startswith(".")})
    except OSError as error:
        raise UserError(
            f"root: {path} cannot be read ({error.strerror}); make it readable or give another folder"
        ) from error


def require_folder(folder: Path, remedy: str) -> None:
    """Raise a UserError, with what the user can do, if the root of a data set is missing."""
    # A name that is too long for the file system is an OSError.
    with suppress(OSError):
        if folder.is_dir():
            return
    raise UserError(f"root: there is no folder {folder}; {remedy}")


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


def _sort(kinds: Mapping[str, str]) -> Folder:
    def named(wanted: str) -> Iterator[str]:
        return (name for name, kind in kinds.items() if kind == wanted)

    others = {name: kind for name, kind in kinds.items() if kind not in (PHOTO, FOLDER)}
    return Folder(sorted(named(PHOTO), key=in_order), sorted(named(FOLDER), key=in_order), others)


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_file():
            return _kind_of_file(entry.name)
        return FOLDER if entry.is_dir() else DANGLING if entry.is_symlink() else "no file"
    except OSError as error:
        if error.errno != ELOOP:
            raise
        return DANGLING


def _kind_of_file(name: str) -> str:
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a Path for each of many files takes long
    return PHOTO if ending in SUFFIXES else ending if len(ending) > 1 else "without an ending"

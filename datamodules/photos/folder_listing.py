"""The content of folders: photos, folders, and why other files are left out; hidden ones are passed over."""

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from typing import NamedTuple

from headstart.datamodules.photos.picture_decoding import suffixes
from headstart.output.errors import UserError
from headstart.output.printable import say

# Why something is left out, besides the ending of its name.
STRAY, NESTED, EMPTY = "photo beside the class folders", "photo in a nested folder", "folder without photos"
DANGLING, LOOP, OUTSIDE = "dangling link", "link loop", "link out of the folder"
# Characters that are not shown, beside those whose category says so: joiners, fillers, variation selectors, blanks.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# Names of files that the line about them quotes.
QUOTED = 5


class Folder(NamedTuple):
    """The content of a folder, without that of its folders.

    Attributes:
        photos: Names of the photos, numbers in the order of their values.
        folders: Names of the folders, likewise.
        others: Why other files are left out, by name: their endings in most cases.
    """

    photos: list[str]
    folders: list[str]
    others: dict[str, str]


def read_folder(path: Path, root: Path | None = None) -> Folder:
    """Return what lies in a folder.

    Args:
        path: The folder.
        root: The folder of the data set, out of which no link may lead; by default `path`.

    Raises:
        UserError: It cannot be read.
    """
    photos: list[str] = []
    folders: list[str] = []
    others: dict[str, str] = {}
    inside = os.path.realpath(root or path)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if reason := _reason(entry, inside):
                    others[entry.name] = reason
                else:
                    (folders if entry.is_dir() else photos).append(entry.name)
    except OSError as error:
        raise UserError(
            f"root: {path} cannot be read ({error.strerror}); make it readable or give another folder"
        ) from error
    return Folder(sorted(photos, key=in_order), sorted(folders, key=in_order), others)


def read_nested(path: Path, name: str) -> dict[str, str]:
    """Return why the files of a nested folder, and of all folders in it, are left out, by name.

    Args:
        path: The nested folder.
        name: Its name relative to the root, which the names of the files begin with.
    """
    left_out = {}
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(title for title in folders if not title.startswith("."))
        below = Path(folder).relative_to(path).as_posix()
        for file in files:
            if not file.startswith("."):
                left_out[join(join(name, "" if below == "." else below), file)] = other_kind(file) or NESTED
    return left_out


def list_classes(root: Path, split: str = "", beside: bool = False) -> tuple[dict[str, list[str]], dict[str, str]]:
    """List the photos of a folder of class folders, and what is left out of it.

    Args:
        root: Folder that all names are relative to.
        split: Name of the folder of class folders; empty for the root itself.
        beside: Whether photos beside the class folders are listed, too, under an empty name, which comes first.

    Returns:
        Names of the photos by class folder, those that hold some alone; and why other files are left out, by name.
    """
    photos: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    top = read_folder(root / split, root)
    for title in ("", *top.folders):
        name = join(split, title)
        pictures, nested, others = read_folder(root / name, root) if title else Folder(top.photos, [], top.others)
        left_out |= {join(name, other): kind for other, kind in others.items()}
        for folder in nested:
            left_out |= read_nested(root / name / folder, join(name, folder))

        if pictures and (title or beside):
            photos[title] = [join(name, photo) for photo in pictures]
        else:
            left_out |= {name: EMPTY} if title else {join(name, photo): STRAY for photo in pictures}
    return photos, left_out


def join(folder: str, name: str) -> str:
    """Return the name of something in a folder, relative to the root; an empty folder is the root itself."""
    return f"{folder}/{name}" if folder and name else folder or name


def in_order(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """Return the key by which names are sorted: numbers in the order of their values."""
    # The pattern's group makes every second part a number, so that parts at the same position have the same type.
    parts = re.split("([0-9]+)", name)
    # Of any length, unlike those that Python reads: of two numbers the one with more digits is larger.
    digits = [part.lstrip("0") for part in parts]
    return [(len(digits[i]), digits[i]) if i % 2 else part for i, part in enumerate(parts)], name


def require_folder(folder: Path, remedy: str) -> None:
    """Raise a UserError, with what the user can do, if the root of a data set is missing."""
    # A name that is too long for the file system is an OSError.
    with suppress(OSError):
        if folder.is_dir():
            return
    raise UserError(f"root: there is no folder {folder}; {remedy}")


def warn_of_like_classes(classes: Iterable[str]) -> None:
    """Warn of names of classes that differ in case, Unicode form, spaces or invisible characters alone.

    Args:
        classes: The names.
    """
    groups = defaultdict[str, list[str]](list)
    for name in classes:
        shown = "".join(filter(_is_visible, unicodedata.normalize("NFKC", name.casefold())))
        groups[" ".join(unicodedata.normalize("NFKC", shown.casefold()).split())].append(name)
    for names in groups.values():
        if len(names) > 1:
            listed = " and ".join(map(ascii, names))
            say(
                f"WARNING: classes {listed} differ in case, Unicode form or invisible characters alone; they stay apart"
            )


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cf", "Cc") and not INVISIBLE.fullmatch(char)


def is_photo(name: str) -> bool:
    """Return whether a file is a photo by the ending of its name."""
    return not other_kind(name)


def count_kinds(others: Mapping[str, str]) -> dict[str, int]:
    """Count reasons, given by name; the most frequent one comes first."""
    return dict(sorted(Counter(others.values()).items(), key=lambda pair: (-pair[1], pair[0])))


def list_kinds(others: Mapping[str, str]) -> str:
    """Return counts of reasons, given by name, as text: `.txt (8), dangling link (4)`."""
    return ", ".join(f"{kind} ({count})" for kind, count in count_kinds(others).items())


def report_left_out(left_out: Mapping[str, str], option: str = "data.photos") -> dict[str, int]:
    """Print how many files are left out, if any, and the first of them; return how many there are for each reason.

    Args:
        left_out: Why each is, by name.
        option: The option that gives the photos, for the message.
    """
    if left_out:
        first = ", ".join([*left_out][:QUOTED]) + (", ..." if len(left_out) > QUOTED else "")
        say(f"{option}: {len(left_out)} files left out: {list_kinds(left_out)}; {first}")
    return count_kinds(left_out)


def _reason(entry: os.DirEntry[str], root: str) -> str:
    """Return why an entry of a folder is left out; an empty text for a photo or a folder."""
    try:
        if entry.is_dir():
            return _reason_of_link(entry, root)
        if entry.is_file():
            return _reason_of_link(entry, root) or other_kind(entry.name)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        return LOOP
    return DANGLING if entry.is_symlink() else "no file"


def _reason_of_link(entry: os.DirEntry[str], root: str) -> str:
    """Return why a link is left out; an empty text for what is no link, or leads to something else in the root."""
    if not entry.is_symlink():
        return ""
    target, folder = Path(entry.path).resolve(), Path(entry.path).parent.resolve()
    if not target.is_relative_to(root):
        return OUTSIDE
    return LOOP if folder.is_relative_to(target) else ""


def other_kind(name: str) -> str:
    """Return the ending of the name of a file that is no photo; an empty text for a photo."""
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a Path for each of many files takes long
    if ending in suffixes():
        return ""
    return ending if len(ending) > 1 else "without an ending"

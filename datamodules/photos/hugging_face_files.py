"""Which files a data set of the package datasets is made of: they are always named, and none is passed over.

Without names of files, the package infers splits from words in paths, and uses files with such a word alone.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.datamodules.photos.folder_listing import STRAY, in_order, is_photo, other_kind
from headstart.output.errors import UserError

# Names of splits, as folders and at the beginning of file names; the first one for validation that exists is used.
VALIDATION_SPLITS = ("validation", "valid", "val", "dev", "test")
SPLITS = ("train", *VALIDATION_SPLITS)
# Words of paths that may mean a split.
NOT_FOR_TRAINING = {*VALIDATION_SPLITS, "eval", "evaluation", "testing"}
# Formats of the package datasets, by the endings of their files.
FORMATS = {".parquet": "parquet", ".tar": "webdataset"}
PHOTOS = "imagefolder"
# Files of an image folder that hold its labels.
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
# The name of a file with its split: `train-00000-of-00004.parquet`, or `test.parquet`.
_NAMED = re.compile(rf"(\w+)-\d+-of-\d+\b|({'|'.join(SPLITS)})(?![a-zA-Z])")


def find_files(folder: Path) -> tuple[str, dict[str, list[str]], dict[str, str]]:
    """Find the files of a local data set: Parquet files, tar shards, or photos in class folders.

    Files and class folders belong to the split whose name their path begins with: `test/...`, `test.parquet` or
    `test-00000-of-00001.parquet`; all of them to the training split if none has one. A folder of photos is a split
    if there are class folders in it, and else a class, whatever it is called. Photos beside class folders are left out.

    Args:
        folder: The folder.

    Returns:
        The format, in the names of the package datasets; paths relative to the folder, by split; and why other files
        are left out, by name.

    Raises:
        UserError: There are none, or files of several formats, or some without a split.
    """
    files = sorted(_files_below(folder), key=in_order)
    content = [name for name in files if Path(name).name not in METADATA]
    photos = [name for name in content if is_photo(name)]
    formats = {FORMATS[suffix] for name in content if (suffix := Path(name).suffix.lower()) in FORMATS}
    if bool(photos) + len(formats) != 1:
        kinds = ", ".join(sorted(({PHOTOS} if photos else set()) | formats)) or "neither"
        raise UserError(
            f"path: {folder} must hold either Parquet files, tar shards or photos, and it holds {kinds}; "
            "name the files with data_files"
        )

    if photos:
        metadata = [name for name in files if Path(name).name in METADATA]
        strays = [] if metadata else _beside_classes(photos)
        left_out = {name: other_kind(name) for name in content if not is_photo(name)} | dict.fromkeys(strays, STRAY)
        return PHOTOS, _split_photos(folder, [name for name in photos if name not in left_out], metadata), left_out
    (form,) = formats
    used = [name for name in content if FORMATS.get(Path(name).suffix.lower()) == form]
    splits = {name: _split_of(name) for name in used}
    if not any(splits.values()):
        _require_no_split(folder, used)
    return form, _group(folder, splits), {name: other_kind(name) for name in files if name not in splits}


def literal(files: Mapping[str, Sequence[str]], folder: Path) -> dict[str, list[str]]:
    """Return the absolute paths of files by split, as patterns that match nothing else."""
    return {split: [glob.escape(str(folder.absolute() / name)) for name in names] for split, names in files.items()}


def require_all_used(path: str, revision: str | None, used: Mapping[Any, Sequence[str]]) -> None:
    """Check that a data set on the Hub is made of all its files, unless its card says which belong to it.

    Args:
        path: Its name.
        revision: Its commit, branch or tag.
        used: The files that the package uses, by split.

    Raises:
        UserError: There are more files of their formats.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        about = HfApi().dataset_info(path, revision=revision)
    except (OfflineModeIsEnabled, HfHubHTTPError, OSError):
        # It was fetched, and checked, while the Hub could be reached.
        return
    if about.card_data is not None and about.card_data.get("configs"):
        return

    names = [name for of_split in used.values() for name in of_split]
    suffixes = {Path(name).suffix for name in names}
    listed = [file.rfilename for file in about.siblings or () if Path(file.rfilename).suffix in suffixes]
    if len(listed) != len(names):
        raise UserError(
            f"path: {path} has {len(listed)} files ending in {', '.join(sorted(suffixes))}, of which the package "
            f"datasets would use {len(names)}, by words in their names; name them with data_files"
        )


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the files in a folder and in all its folders, relative to it, but for hidden ones."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if links := [name for name in folders if Path(here, name).is_symlink()]:
            raise UserError(
                f"path: {Path(here, links[0])} is a link to a folder, which is not followed; name its files"
            )
        yield from (Path(here, name).relative_to(folder).as_posix() for name in files if not name.startswith("."))


def _beside_classes(photos: Sequence[str]) -> list[str]:
    """Return the photos in the folder itself or in that of a split which also has photos in folders."""
    parents = {name: name.rpartition("/")[0] for name in photos}
    with_classes = {""} if any(parents.values()) else set()
    with_classes |= {parent.split("/")[0] for parent in parents.values() if "/" in parent} & {*SPLITS}
    return [name for name, parent in parents.items() if parent in with_classes]


def _split_photos(folder: Path, photos: list[str], metadata: list[str]) -> dict[str, list[str]]:
    parts = [name.split("/") for name in photos]
    in_splits = all(first in SPLITS and (len(rest) > 1 or metadata) for first, *rest in parts)
    if not in_splits:
        _require_no_split(folder, {first for first, *rest in parts if len(rest) > 1})
    splits = {name: name.split("/")[0] if in_splits else "" for name in [*photos, *metadata]}
    if not metadata and len({len(part) for part in parts}) > 1:
        raise UserError(
            f"path: {folder} holds photos at several depths; the package datasets needs them in class folders"
        )
    return _group(folder, splits)


def _require_no_split(folder: Path, names: Iterable[str]) -> None:
    """Raise a UserError if paths that begin with no split have a word for photos that are not for training."""
    for name in sorted(names):
        if words := {*re.split("[^a-z]+", name.lower())} & NOT_FOR_TRAINING:
            raise UserError(
                f"path: {name} in {folder} may be a split ({', '.join(sorted(words))}), which would be used for "
                "training; name the files of each split with data_files"
            )


def _split_of(name: str) -> str:
    """Return the split that the path of a file begins with; an empty text without one."""
    first = name.split("/")[0]
    match = _NAMED.match(Path(name).name) or (_NAMED.fullmatch(first) if "/" in name else None)
    return (match[1] or match[2]) if match else ""


def _group(folder: Path, splits: Mapping[str, str]) -> dict[str, list[str]]:
    without = [name for name, split in splits.items() if not split]
    if without and len(without) < len(splits):
        raise UserError(
            f"path: {len(without)} of {len(splits)} files in {folder} have no split in their names, {without[0]} "
            "first; name the files of each split with data_files"
        )
    groups: dict[str, list[str]] = {}
    for name, split in splits.items():
        groups.setdefault(split or "train", []).append(name)
    return groups

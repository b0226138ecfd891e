"""Pictures as a command or a function is given them: a path, a pattern, a list, arrays or a data set."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.csv_photos import CsvPhotos
from headstart.datamodules.photos.folder_listing import FOLDER, SUFFIXES, Listing
from headstart.datamodules.photos.hugging_face_dataset import SAVED, HuggingFaceDataset
from headstart.datamodules.photos.locations import expand, is_remote, join
from headstart.datamodules.photos.parquet_photos import ParquetPhotos
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.photos.webdataset import WebDatasetShards
from headstart.output.errors import UserError, prefix_errors

Picture = str | Path | NDArray[np.uint8]
Source = CsvPhotos | HuggingFaceDataset | ParquetPhotos | WebDatasetShards

# Endings of files that hold many pictures.
PACKED = SHARD, PARQUET = (".tar", ".parquet")
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".lz4")
UNPACK = "unpack compressed shards to plain .tar"
# Beginning of a data set of the Hugging Face Hub, and of a file in one.
HUB, HUB_FILE = "hf://", "hf://datasets/"


def find_source(photos: str | Sequence[str]) -> Source | None:
    """Return the source of a data set that is known by what it is called; None for folders and files of pictures.

    Args:
        photos: A CSV file, or tar shards or Parquet files by paths or patterns. Or a data set of the Hugging Face Hub,
            `hf://owner/name`, or a folder that `save_to_disk` of its library wrote.

    Raises:
        UserError: It is the path, or a pattern, of compressed shards.
    """
    endings = {Path(each).suffix.lower() for each in ([photos] if isinstance(photos, str) else photos)}
    if endings == {SHARD}:
        return WebDatasetShards(photos if isinstance(photos, str) else [*photos])
    if endings == {PARQUET}:
        return ParquetPhotos(photos if isinstance(photos, str) else [*photos])
    if not isinstance(photos, str):
        return None
    if endings == {".csv"}:
        return CsvPhotos(photos)
    if photos.startswith(HUB) and not photos.startswith(HUB_FILE):
        return HuggingFaceDataset(photos.removeprefix(HUB))
    if not is_remote(photos) and any((Path(photos).expanduser() / name).is_file() for name in SAVED):
        return HuggingFaceDataset(photos)
    if _is_compressed(photos) and (is_remote(photos) or "*" in photos or Path(photos).expanduser().is_file()):
        raise UserError(f"{photos} matches no picture; {UNPACK}")
    return None


def read_pictures(
    photos: str | Path | Sequence[Picture] | NDArray[np.uint8] | Pictures,
    cache: Path | None = None,
    option: str = "photos",
) -> Pictures:
    """List pictures.

    Args:
        photos: A source as for `find_source`; labels may be missing. A folder of pictures, with those in its folders,
            or files of pictures by a pattern or as a list. Arrays `[height, width, 3]` in uint8 as a list, or one
            array. Or the photos of a data set.
        cache: The cache folder, which keeps indexes of large files.
        option: Name of the argument that gives the pictures, for messages.

    Returns:
        The pictures, in the order of the list or of their names; with labels as far as there are any.

    Raises:
        UserError: There are none, or they cannot be read.
    """
    if isinstance(photos, Pictures):
        return photos
    with prefix_errors(option):
        given = str(photos) if isinstance(photos, Path) else photos
        if not isinstance(given, str) and any(isinstance(each, np.ndarray) for each in given):
            return _Arrays([np.asarray(each) for each in given])
        return _read(given if isinstance(given, str) else [str(each) for each in given], cache)


def _read(given: str | Sequence[str], cache: Path | None) -> Pictures:
    """List the pictures of a data set, a folder, a pattern or a list."""
    files, source = given, find_source(given)
    if source is None and isinstance(given, str):
        root = given if is_remote(given) else Path(given).expanduser()
        is_file = "*" in given or _is_picture(given) or _is_compressed(given)
        if root.is_dir() if isinstance(root, Path) else not is_file:
            return _in_folder(root)
        files = _matches(str(root))
        source = find_source(files)

    if source is not None:
        source.prepare(cache)
        return source.pictures()
    if isinstance(given, str):
        _require_picture(given, files)
    elif not files:
        raise UserError(f"there are none in {given}; give a folder of pictures, files or arrays")
    names = [each if is_remote(each) else str(Path(each).expanduser().absolute()) for each in files]
    return PhotoFiles(Path("/"), names, [0] * len(names), ["photos"])


def _matches(pattern: str) -> list[str]:
    """List the files that a path or a pattern names."""
    files = expand(pattern)
    if files == [pattern] and not is_remote(pattern) and not Path(pattern).is_file():
        raise UserError(f"there is no folder {pattern}; give one that holds pictures, or a list of files")
    return files


def _require_picture(pattern: str, files: Sequence[str]) -> None:
    """Raise a UserError unless one of the files of a pattern is a picture by its ending."""
    if any(map(_is_picture, files)):
        return
    remedy = f"give a folder, or files that end in {', '.join((*SUFFIXES, *PACKED))} or .csv"
    if any(map(_is_compressed, files)):
        remedy = UNPACK
    raise UserError(f"{pattern} matches no picture; {remedy}")


def _is_picture(location: str) -> bool:
    return Path(location).suffix.lower() in SUFFIXES


def _is_compressed(location: str) -> bool:
    """Whether a location is that of a compressed shard, by its ending."""
    *_, last, end = ("", "", *map(str.lower, Path(location).suffixes))
    return end == ".tgz" or (last == SHARD and end in COMPRESSIONS)


def _in_folder(root: str | Path) -> Photos:
    """List the pictures in a folder and its folders, which are their classes unless some lie outside of them."""
    listing = Listing(root)
    top = listing.folder()
    found = {"": top._replace(folders=[])} | {name: listing.folder(name) for name in top.folders}
    listed = [(folder, each.photos) for folder, each in found.items() if each.photos]
    if not listed:
        raise UserError(f"there are none in {str(root)!r}; {_remedy(listing)}")

    left_out = {
        _below(folder, name): kind
        for folder, each in found.items()
        for name, kind in (each.others | dict.fromkeys(each.folders, FOLDER)).items()
    }

    below = [_below(folder, name) for folder, photos in listed for name in photos]
    base = str(root.absolute()) if isinstance(root, Path) else listing.root
    labels, classes = [0] * len(below), ["photos"]
    if listed[0][0]:
        labels = [label for label, (_, photos) in enumerate(listed) for _ in photos]
        classes = [folder for folder, _ in listed]
    photos = PhotoFiles(Path("/"), [join(base, name) for name in below], labels, classes, left_out)
    photos.listed = [listing.states[name] for name in below] if listing.states else []
    return photos


def _remedy(listing: Listing) -> str:
    """Return what to give in place of a folder that holds no pictures, nor do its folders."""
    top = listing.folder()
    packed = next((ending for ending in PACKED if ending in top.others.values()), None)
    if packed:
        return f"give {f'*{packed}'!r} in it"
    deeper = {name: (_below(name, each) for each in listing.folder(name).folders) for name in top.folders}
    holding = [name for name, folders in deeper.items() if any(listing.folder(each).photos for each in folders)]
    if holding:
        return f"there are some one level deeper; give {' or '.join(repr(listing.location(name)) for name in holding)}"
    return "give a folder of pictures, files or arrays"


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


class _Arrays(Pictures):
    """Pictures in memory.

    Args:
        arrays: `[height, width, 3]` in uint8 each.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        for index, array in enumerate(arrays):
            if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
                raise UserError(f"array {index} is {array.dtype} {list(array.shape)}; give uint8 [height, width, 3]")
        self.arrays = arrays
        self.names = [f"array {index}" for index in range(len(arrays))]

    def read(self, index: int) -> Image.Image:
        """Return one picture."""
        return Image.fromarray(self.arrays[index])

    def digest(self, index: int) -> str:
        """Digest the pixels of one picture."""
        array = self.arrays[index]
        return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()

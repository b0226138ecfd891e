"""Read the pictures that an argument of a command or function gives: a path, a list, arrays or a data set."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.csv_photos import CsvPhotos
from headstart.datamodules.photos.folder_listing import is_photo, list_classes, list_kinds
from headstart.datamodules.photos.hugging_face_dataset import SAVED, HuggingFaceDataset
from headstart.datamodules.photos.hugging_face_files import FORMATS
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.output.errors import UserError, prefix_errors

Picture = str | Path | NDArray[np.uint8]

# Prefixes of the URL of a data set of the Hugging Face Hub, and of a file in such a data set.
HUB, HUB_FILE = "hf://", "hf://datasets/"


def find_source(photos: str | Sequence[str]) -> CsvPhotos | HuggingFaceDataset | None:
    """Return the source of a data set if its path or URL shows its format; None for folders and files of pictures.

    Args:
        photos: A CSV file; tar shards or Parquet files, by a path or URL with wildcards or as a list; a data set of the
            Hugging Face Hub, `hf://owner/name`; or a folder that `save_to_disk` of the package datasets wrote.
    """
    paths = [photos] if isinstance(photos, str) else [*photos]
    endings = {Path(path).suffix.lower() for path in paths}
    if len(endings) == 1 and (ending := endings.pop()) in FORMATS:
        return HuggingFaceDataset(FORMATS[ending], paths)
    if not isinstance(photos, str):
        return None
    if photos.startswith(HUB) and not photos.startswith(HUB_FILE):
        return HuggingFaceDataset(photos.removeprefix(HUB))
    path = Path(photos).expanduser()
    if path.suffix.lower() == ".csv":
        return CsvPhotos(photos)
    return HuggingFaceDataset(photos) if any((path / name).is_file() for name in SAVED) else None


def read_pictures(
    photos: str | Path | Sequence[Picture] | NDArray[np.uint8] | Pictures,
    cache: Path | None = None,
    option: str = "photos",
) -> Pictures:
    """List pictures.

    Args:
        photos: A data set as in `find_source`, with or without labels; a folder whose pictures are in it or in its
            folders; a file or a list of files; a list of uint8 arrays `[height, width, 3]`, or one array of them; or
            the photos of a data set.
        cache: The cache folder.
        option: Name of the argument that gives the pictures, for messages.

    Returns:
        The pictures, in the order of the list or of their names. They have labels if the source has.

    Raises:
        UserError: There are no pictures, or they cannot be read.
    """
    if isinstance(photos, Pictures):
        return photos
    with prefix_errors(option, single=True):
        if isinstance(photos, str | Path):
            return _read(str(photos), cache)
        if any(isinstance(picture, np.ndarray) for picture in photos):
            return _Arrays([np.asarray(picture) for picture in photos])
        return _read([str(picture) for picture in photos], cache)


def _read(given: str | Sequence[str], cache: Path | None) -> Pictures:
    """List the pictures of a data set, a folder, a file or a list of files."""
    if (source := find_source(given)) is not None:
        source.prepare(cache)
        return source.pictures()
    if isinstance(given, str):
        path = Path(given).expanduser()
        if path.is_dir():
            return _in_folder(path)
        if not path.is_file():
            raise UserError(f"there is no folder {given}; give one that holds pictures, or a file")
        if not is_photo(given):
            raise UserError(f"{given} is no picture by its ending; give a folder, a picture, .csv, .tar or .parquet")
    elif not given:
        raise UserError(f"there are none in {given}; give a folder of pictures, files or arrays")
    files = [given] if isinstance(given, str) else given
    return PhotoFiles(
        Path("/"), [str(Path(file).expanduser().absolute()) for file in files], [0] * len(files), ["photos"]
    )


def _in_folder(root: Path) -> Photos:
    """List the pictures of a folder, then those of its folders.

    If the folder itself holds none, its folders are the classes, as in `ClassFolders`. Otherwise there is one class.
    """
    photos, left_out = list_classes(root, beside=True)
    if not photos:
        instead = f"; it holds {list_kinds(left_out)}" if left_out else ""
        raise UserError(f"there are none in {str(root)!r}{instead}; give a folder of pictures, files or arrays")

    names = [str(root.absolute() / name) for listed in photos.values() for name in listed]
    if "" in photos:
        return PhotoFiles(Path("/"), names, [0] * len(names), ["photos"], left_out)
    labels = [label for label, listed in enumerate(photos.values()) for _ in listed]
    return PhotoFiles(Path("/"), names, labels, [*photos], left_out)


class _Arrays(Pictures):
    """Pictures in memory.

    Args:
        arrays: uint8 arrays, each `[height, width, 3]`.
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

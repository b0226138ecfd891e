"""The photos of cats and dogs of the Oxford-IIIT Pet data set."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path

from datamodules.photos.class_folders import require_folder
from datamodules.photos.download import fetch_once
from datamodules.photos.photo_source import PhotoFiles, PhotoSource
from output.errors import UserError
from store.cache import cache_folder

TARGET = "binary-category"
HOMEPAGE = "https://www.robots.ox.ac.uk/~vgg/data/pets/"
_FOLDER = "oxford-iiit-pet"


class OxfordPets(PhotoSource):
    """Oxford-IIIT Pet with two classes, cat and dog; training on `trainval`, validation on `test`.

    Args:
        root: Folder that holds torchvision's oxford-iiit-pet/; by default a folder in the cache folder.
        download: Fetch the data set with torchvision, if it is missing.
    """

    name = "oxford_pets"

    def __init__(self, root: str | None = None, download: bool = False) -> None:
        self.root = cache_folder() / "datasets" if root is None else Path(root).expanduser()
        self.rooted = root is not None
        self.download = download

    def prepare(self, cache: Path | None = None) -> None:
        """Download the data set, if that is asked for and it is missing.

        Args:
            cache: The cache folder, for a source that was given no root.
        """
        if not self.rooted and cache is not None:
            self.root = cache / "datasets"
        if self.download:
            fetch_once(self.root / _FOLDER, _fetch)

    def train(self) -> PhotoFiles:
        """List the photos of the `trainval` split."""
        return self._read("trainval")

    def validation(self) -> PhotoFiles:
        """List the photos of the `test` split."""
        return self._read("test")

    def _read(self, split: str) -> PhotoFiles:
        folder = self.root / _FOLDER
        require_folder(folder, f"give the folder that holds {_FOLDER}/, or fetch it with download=true")
        from torchvision.datasets import OxfordIIITPet  # slow to import, and other sources are named without it

        try:
            dataset = OxfordIIITPet(self.root, split=split, target_types=TARGET)
        except (OSError, RuntimeError, ValueError) as error:
            raise _incomplete(folder, str(error)) from error
        # torchvision offers the labels in public only along with decoded photos.
        paths: list[Path] = dataset._images
        labels: list[int] = dataset._bin_labels
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise _incomplete(folder, f"{len(missing)} photos of the {split} split are missing, {missing[0]} first")
        names = [path.relative_to(folder).as_posix() for path in paths]
        return PhotoFiles(folder, names, labels, dataset.bin_classes)


def _fetch(partial: Path) -> Path:
    from torchvision.datasets import OxfordIIITPet

    try:
        OxfordIIITPet(partial, target_types=TARGET, download=True)
    except (OSError, HTTPException, RuntimeError) as error:
        raise UserError(
            f"download: torchvision cannot fetch the Oxford-IIIT Pet data set from {HOMEPAGE} "
            f"({error}); set root to a folder that holds a local copy"
        ) from error
    return partial / _FOLDER


def _incomplete(folder: Path, reason: str) -> UserError:
    return UserError(f"root: {folder} is incomplete ({reason}); remove it, then fetch it with download=true")

"""Photos in class folders, in zip archives that are public."""

import zipfile
import zlib
from pathlib import Path
from typing import ClassVar

from headstart.datamodules.photos.class_folders import read_class_folders
from headstart.datamodules.photos.download import FetchedSource, download
from headstart.datamodules.photos.folder_listing import require_folder
from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError


class PublicArchive(FetchedSource):
    """A data set in a zip archive of `train/` and `val/` or `validation/`, with a folder for each class.

    Args:
        root: Folder that holds train/, itself or in the archive's own folder. The default is a folder in the cache.
        download: Download the archive and unpack it into the root, if the root is missing or empty.
    """

    # Names of the classes, from class 0; the address of the archive, and its SHA-256 where its owner states one.
    classes: ClassVar[tuple[str, ...]]
    url: ClassVar[str]
    sha256: ClassVar[str | None] = None

    def __init__(self, root: str | None = None, download: bool = False) -> None:
        super().__init__(root, f"datasets/{Path(self.url).stem}", download)

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos of both splits."""
        require_folder(self.root, "give the folder that holds the photos, or fetch them with download=true")
        inside = self.root / Path(self.url).stem
        return read_class_folders(inside if inside.is_dir() else self.root, self.classes)

    def fill(self, partial: Path) -> Path:
        """Download the archive and unpack it."""
        archive, unpacked = partial / "archive.zip", partial / "unpacked"
        download(self.url, archive, self.sha256)
        try:
            with zipfile.ZipFile(archive) as file:
                # `extractall` compares all checksums, and writes no links and no files outside of its folder.
                file.extractall(unpacked)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise UserError(
                f"download: {self.url} is not an intact zip archive ({error}); try again, or set root to a local copy"
            ) from error
        return unpacked


class AntsAndBees(PublicArchive):
    """Ants (class 0) and bees (class 1), the hymenoptera photos of PyTorch's tutorial on transfer learning."""

    name = "ants_and_bees"
    classes = ("ants", "bees")
    url = "https://download.pytorch.org/tutorial/hymenoptera_data.zip"
    # As the tutorials of PyTorch state it.
    sha256 = "fbc41b31d544714d18dd1230b1e2b455e1557766e13e67f9f5a7a23af7c02209"


class CatsAndDogs(PublicArchive):
    """Cats (class 0) and dogs (class 1), 3,000 of the photos of a contest at Kaggle."""

    name = "cats_and_dogs"
    classes = ("cats", "dogs")
    url = "https://storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip"

"""Photos in class folders, in zip archives that are public."""

import zipfile
import zlib
from pathlib import Path
from typing import ClassVar

from headstart.datamodules.photos.class_folders import read_class_folders
from headstart.datamodules.photos.download import FetchedSource, download
from headstart.datamodules.photos.folder_listing import read_folder, require_folder
from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError


class PublicArchive(FetchedSource):
    """A data set in a zip archive of `train/` and `val/` or `validation/`, with a folder for each class.

    Args:
        root: Folder that holds train/, or whose only subfolder does. The default is a folder in the cache.
        download: Download the archive and unpack it into the root, if the root is missing or empty.
        url: Address of the archive. The default is the public one.
        sha256: SHA-256 of the archive. Another digest raises an error. By default no digest is checked.
    """

    # Names of the classes, from class 0 on, and the default address of the archive.
    classes: ClassVar[tuple[str, ...]]
    public_url: ClassVar[str]

    def __init__(
        self, root: str | None = None, download: bool = False, url: str | None = None, sha256: str | None = None
    ) -> None:
        super().__init__(root, f"datasets/{Path(self.public_url).stem}", download)
        self.url = url or self.public_url
        self.sha256 = sha256

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos of both splits."""
        return read_class_folders(_find_base(self.root), self.classes)

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
                f"url: {self.url} is not an intact zip archive ({error}); fetch it again, or set root to a local copy"
            ) from error
        return unpacked


class AntsAndBees(PublicArchive):
    """Ants (class 0) and bees (class 1), the hymenoptera photos of PyTorch's tutorial on transfer learning."""

    name = "ants_and_bees"
    classes = ("ants", "bees")
    public_url = "https://download.pytorch.org/tutorial/hymenoptera_data.zip"


class CatsAndDogs(PublicArchive):
    """Cats (class 0) and dogs (class 1), 3,000 of the photos of a contest at Kaggle."""

    name = "cats_and_dogs"
    classes = ("cats", "dogs")
    public_url = "https://storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip"


def _find_base(root: Path) -> Path:
    """Return the root if it holds train/, else its only subfolder that does; raise a UserError without exactly one."""
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

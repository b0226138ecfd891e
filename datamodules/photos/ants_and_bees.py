"""Photos of ants and bees, from one folder per class."""

from headstart.datamodules.photos.class_folders import find_base, read_class_folders
from headstart.datamodules.photos.download import ZipSource
from headstart.datamodules.photos.photo_source import Photos

CLASSES = ("ants", "bees")
PUBLIC_ZIP = "https://download.pytorch.org/tutorial/hymenoptera_data.zip"


class AntsAndBees(ZipSource):
    """Ants (class 0) and bees (class 1), the hymenoptera photos of PyTorch's tutorial on transfer learning.

    `train/` and `val/` or `validation/` each hold `ants/` and `bees/`, as in the public archive.

    Args:
        root: Folder that holds train/, or whose only subfolder does. The default is a folder in the cache.
        download: Download the archive and unpack it into the root, if the root is missing or empty.
        url: Address of the archive.
        sha256: SHA-256 of the archive. Another digest raises an error. By default it is not checked.
    """

    name = "ants_and_bees"

    def __init__(
        self, root: str | None = None, download: bool = False, url: str = PUBLIC_ZIP, sha256: str | None = None
    ) -> None:
        super().__init__(root, "datasets/hymenoptera_data", download, url, sha256)

    def splits(self) -> tuple[Photos, Photos]:
        """List the photos of both splits."""
        return read_class_folders(find_base(self.root), CLASSES)

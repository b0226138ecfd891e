"""The photos of cats and dogs of the Oxford-IIIT Pet data set."""

from pathlib import Path

from headstart.datamodules.photos.download import FetchedSource, explain_download_errors
from headstart.datamodules.photos.folder_listing import require_folder
from headstart.datamodules.photos.photo_source import PhotoFiles
from headstart.output.errors import UserError

TARGET = "binary-category"


class OxfordPets(FetchedSource):
    """Oxford-IIIT Pet with two classes, cat and dog; training on `trainval`, validation on `test`.

    Args:
        root: Folder that holds torchvision's oxford-iiit-pet/. The default is a folder in the cache.
        download: Fetch the data set with torchvision, if it is missing.
    """

    name = "oxford_pets"
    subfolder = "oxford-iiit-pet"

    def __init__(self, root: str | None = None, download: bool = False) -> None:
        super().__init__(root, "datasets", download)

    def fill(self, partial: Path) -> Path:
        """Download the data set with torchvision."""
        from torchvision.datasets import OxfordIIITPet

        with explain_download_errors("the Oxford-IIIT Pet data set"):
            OxfordIIITPet(partial, target_types=TARGET, download=True)
        return partial / self.subfolder

    def train(self) -> PhotoFiles:
        """List the photos of the `trainval` split."""
        return self._read("trainval")

    def validation(self) -> PhotoFiles:
        """List the photos of the `test` split."""
        return self._read("test")

    def _read(self, split: str) -> PhotoFiles:
        folder = self.root / self.subfolder
        require_folder(folder, f"give the folder that holds {self.subfolder}/, or fetch it with download=true")
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


def _incomplete(folder: Path, reason: str) -> UserError:
    return UserError(f"root: {folder} is incomplete ({reason}); remove it, then fetch it with download=true")

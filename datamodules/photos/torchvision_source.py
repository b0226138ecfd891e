"""The base class of all data sets of torchvision: it downloads and opens them."""

from abc import abstractmethod
from pathlib import Path
from typing import Any

from headstart.datamodules.photos.download import FetchedSource, explain_download_errors
from headstart.datamodules.photos.folder_listing import require_folder
from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError, reason_of

Arguments = dict[str, Any]


class TorchvisionSource(FetchedSource):
    """A data set of torchvision.

    Args:
        name: Name of torchvision's class.
        inside: Path in the cache folder.
        root: Folder that torchvision's class has as its root; by default that in the cache folder.
        download: Whether the data set is fetched where its folder is missing or empty.
    """

    # Whether one download fetches all splits.
    in_one_archive = False

    def __init__(self, name: str, inside: str, root: str | None, download: bool) -> None:
        super().__init__(root, inside, download)
        self.name = name

    @abstractmethod
    def splits(self) -> tuple[Arguments, Arguments | None]:
        """Return the arguments of torchvision's class for the training and the validation photos, if there are any."""

    @abstractmethod
    def convert(self, dataset: Any) -> Photos:  # noqa: ANN401 - one of torchvision's classes
        """Return the photos of an opened data set."""

    def train(self) -> Photos:
        """List the training photos."""
        return self._read(self.splits()[0])

    def validation(self) -> Photos:
        """List the validation photos."""
        arguments = self.splits()[1]
        if arguments is None:
            raise UserError(f"name: torchvision's {self.name} has no validation split; give validation_fraction")
        return self._read(arguments)

    def fill(self, partial: Path) -> Path:
        """Download the data set with torchvision."""
        with explain_download_errors(self.name):
            for arguments in self.splits()[: 1 if self.in_one_archive else 2]:
                if arguments is not None:
                    self._open(partial, {**arguments, "download": True})
        return partial

    def _read(self, arguments: Arguments) -> Photos:
        require_folder(
            self.root, f"give the folder that holds torchvision's {self.name}, or fetch it with download=true"
        )
        try:
            return self.convert(self._open(self.root, arguments))
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"root: torchvision finds no complete {self.name} in {self.root} ({reason_of(error)}); "
                "download=true fills a missing or empty folder only"
            ) from error

    def _open(self, root: Path, arguments: Arguments) -> Any:  # noqa: ANN401 - one of torchvision's classes
        from torchvision import datasets  # slow to import, and sources are listed without it

        return getattr(datasets, self.name)(str(root), **arguments)

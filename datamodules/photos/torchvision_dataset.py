"""The data sets of torchvision: their base class, and those of image classification, by name."""

from abc import abstractmethod
from http.client import HTTPException
from pathlib import Path
from typing import Any

from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.dataset_photos import DatasetPhotos, class_names
from headstart.datamodules.photos.download import FetchedSource
from headstart.datamodules.photos.folder_listing import require_folder
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.output.errors import UserError, reason_of
from headstart.output.seeds import Seed

Arguments = dict[str, Any]


def _named(train: str, validation: str) -> tuple[Arguments, Arguments]:
    return {"split": train}, {"split": validation}


_FLAGGED = {"train": True}, {"train": False}
# Arguments for the training and the validation photos; where there are three splits, validation is not the test.
SPLITS: dict[str, tuple[Arguments, Arguments | None]] = {
    **dict.fromkeys(("CIFAR10", "CIFAR100", "FashionMNIST", "KMNIST", "MNIST", "QMNIST", "USPS"), _FLAGGED),
    **dict.fromkeys(
        ("DTD", "FGVCAircraft", "Flowers102", "ImageNet", "Imagenette", "PCAM", "RenderedSST2"), _named("train", "val")
    ),
    **dict.fromkeys(("Food101", "GTSRB", "STL10", "SVHN", "StanfordCars"), _named("train", "test")),
    **dict.fromkeys(("Caltech101", "Caltech256", "EuroSAT", "SUN397"), ({}, None)),
    "Country211": _named("train", "valid"),
    "EMNIST": ({"split": "balanced", "train": True}, {"split": "balanced", "train": False}),
    "OxfordIIITPet": _named("trainval", "test"),
    "Places365": ({"split": "train-standard", "small": True}, {"split": "val", "small": True}),
    # Unlike the others, it downloads by default.
    "SEMEION": ({"download": False}, None),
}
# Data sets that torchvision cannot download.
BY_HAND = ("ImageNet",)
# Attributes with files and labels, in two lists or one; iterating over a data set would decode every photo.
FILE_LISTS = (("_image_files", "_labels"), ("_images", "_labels"), ("samples",), ("_samples",), ("imgs",))


class TorchvisionSource(FetchedSource):
    """A data set of torchvision.

    Args:
        kind: Name of torchvision's class.
        inside: Path in the cache folder.
        root: Folder that torchvision's class has as its root; by default that in the cache folder.
        download: Whether the data set is fetched where its folder is missing or empty.
    """

    def __init__(self, kind: str, inside: str, root: str | None, download: bool) -> None:
        super().__init__(root, inside, download)
        self.kind = kind

    @abstractmethod
    def arguments(self) -> tuple[Arguments, Arguments | None]:
        """Return the arguments of torchvision's class for the training and the validation photos, if there are any."""

    @abstractmethod
    def convert(self, dataset: Any) -> Photos:  # noqa: ANN401 - one of torchvision's classes
        """Return the photos of an opened data set; an OSError where some are missing."""

    def splits(self) -> tuple[Photos, Photos | None]:
        """List the photos of torchvision's splits, of which there may be one alone."""
        train, validation = self.arguments()
        return self._read(train), None if validation is None else self._read(validation)

    def fill(self, partial: Path) -> Path:
        """Download the data set with torchvision."""
        try:
            for arguments in self.arguments():
                if arguments is not None:
                    self._open(partial, {**arguments, "download": True})
        except (OSError, HTTPException, RuntimeError) as error:
            raise UserError(
                f"download: torchvision cannot fetch {self.kind} ({reason_of(error)}); "
                "set root to a folder that holds a local copy"
            ) from error
        return partial

    def _read(self, arguments: Arguments) -> Photos:
        require_folder(self.root, f"give the folder that has torchvision's {self.kind}, or fetch it with download=true")
        try:
            return self.convert(self._open(self.root, arguments))
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"root: torchvision finds no complete {self.kind} in {self.root} ({reason_of(error)}); "
                "download=true fills a missing or empty folder only"
            ) from error

    def _open(self, root: Path, arguments: Arguments) -> Any:  # noqa: ANN401 - one of torchvision's classes
        from torchvision import datasets  # slow to import, and sources are listed without it

        return getattr(datasets, self.kind)(str(root), **arguments)


class TorchvisionDataset(TorchvisionSource):
    """A classification data set of torchvision.

    All data sets whose photos have one class each are possible, with these exceptions. FER2013 has no download, and no
    labels in one form of its test photos. INaturalist has folders of classes, which `ClassFolders` lists without
    decoding every photo. The splits of Omniglot and LFWPeople have different classes. The labels of CLEVRClassification
    are counts. FakeData is excluded as well. EMNIST is the balanced variant with 47 classes, Places365 the small
    pictures. PCAM needs h5py. ImageNet needs its archives, put into the root by hand.

    Args:
        name: Name of torchvision's class, such as CIFAR10, Flowers102 or StanfordCars.
        root: Root of torchvision's class. The default is a folder in the cache.
        download: Fetch the data set with torchvision, if the root is missing or empty.
        validation_fraction: Share of each class to hold out for validation, for data sets without a split, such as
            EuroSAT.
        split_seed: Seed of that split.
    """

    def __init__(
        self,
        name: str,
        root: str | None = None,
        download: bool = False,
        validation_fraction: OpenUnitInterval | None = None,
        split_seed: Seed = 0,
    ) -> None:
        super().__init__(name, f"datasets/torchvision/{name}", root, download)
        self.name = name
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def arguments(self) -> tuple[Arguments, Arguments | None]:
        """Return the arguments of torchvision's class for both splits."""
        if self.name not in SPLITS:
            raise UserError(f"name: torchvision's {self.name!r} is not known here; allowed are {', '.join(SPLITS)}")
        train, validation = SPLITS[self.name]
        if validation is not None and self.validation_fraction is not None:
            raise UserError(f"validation_fraction: torchvision's {self.name} has a split of its own; leave it out")
        return train, validation

    def fill(self, partial: Path) -> Path:
        """Download the data set with torchvision."""
        if self.name in BY_HAND:
            raise UserError(
                f"download: torchvision does not download {self.name}; put its archives, as torchvision's "
                "documentation names them, into root"
            )
        return super().fill(partial)

    def convert(self, dataset: Any) -> Photos:  # noqa: ANN401 - one of torchvision's classes
        """List the files of a data set, or read its pictures where it is not made of files."""
        return _list_files(dataset, self.root) or DatasetPhotos(dataset)


class OxfordPets(TorchvisionSource):
    """Oxford-IIIT Pet with two classes, cat and dog; training on `trainval`, validation on `test`.

    Args:
        root: Folder that holds torchvision's oxford-iiit-pet/. The default is a folder in the cache.
        download: Fetch the data set with torchvision, if the root is missing or empty.
    """

    name = "oxford_pets"

    def __init__(self, root: str | None = None, download: bool = False) -> None:
        super().__init__("OxfordIIITPet", "datasets/torchvision/OxfordIIITPet", root, download)

    def arguments(self) -> tuple[Arguments, Arguments]:
        """Return the arguments of torchvision's class for both splits."""
        train, validation = ({"split": split, "target_types": "binary-category"} for split in ("trainval", "test"))
        return train, validation

    def convert(self, dataset: Any) -> PhotoFiles:  # noqa: ANN401 - one of torchvision's classes
        """List the photos of a data set; torchvision offers the labels in public only along with decoded photos."""
        missing = [path.name for path in dataset._images if not path.is_file()]
        if missing:
            raise FileNotFoundError(f"{len(missing)} photos are missing, {missing[0]} first")
        folder = self.root / "oxford-iiit-pet"
        names = [path.relative_to(folder).as_posix() for path in dataset._images]
        return PhotoFiles(folder, names, dataset._bin_labels, dataset.bin_classes)


def _list_files(dataset: Any, root: Path) -> PhotoFiles | None:  # noqa: ANN401 - one of torchvision's classes
    """List the files of a data set in the order of their names; None where it is not made of files."""
    lists = next((names for names in FILE_LISTS if all(hasattr(dataset, name) for name in names)), None)
    if lists is None:
        return None
    columns = [getattr(dataset, name) for name in lists]
    pairs = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    listed = sorted((Path(path).relative_to(root).as_posix(), int(label)) for path, label in pairs)
    names, numbers = [name for name, _ in listed], [label for _, label in listed]
    return PhotoFiles(root, names, numbers, class_names(dataset, numbers))

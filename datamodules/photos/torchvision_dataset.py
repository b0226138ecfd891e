"""The image classification data sets of torchvision, by name."""

from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.dataset_photos import DatasetPhotos, class_names
from headstart.datamodules.photos.held_out import hold_out
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.torchvision_source import Arguments, TorchvisionSource
from headstart.output.errors import UserError
from headstart.output.seeds import Seed


def _named(train: str, validation: str) -> tuple[Arguments, Arguments]:
    return {"split": train}, {"split": validation}


_FLAGGED = {"train": True}, {"train": False}
# Arguments for the training and the validation photos; where there are three splits, validation is not the test.
SPLITS: dict[str, tuple[Arguments, Arguments | None]] = {
    "CIFAR10": _FLAGGED,
    "CIFAR100": _FLAGGED,
    "Caltech101": ({}, None),
    "Caltech256": ({}, None),
    "Country211": _named("train", "valid"),
    "DTD": _named("train", "val"),
    "EMNIST": ({"split": "balanced", "train": True}, {"split": "balanced", "train": False}),
    "EuroSAT": ({}, None),
    "FGVCAircraft": _named("train", "val"),
    "FashionMNIST": _FLAGGED,
    "Flowers102": _named("train", "val"),
    "Food101": _named("train", "test"),
    "GTSRB": _named("train", "test"),
    "ImageNet": _named("train", "val"),
    "Imagenette": _named("train", "val"),
    "KMNIST": _FLAGGED,
    "MNIST": _FLAGGED,
    "OxfordIIITPet": _named("trainval", "test"),
    "PCAM": _named("train", "val"),
    "Places365": ({"split": "train-standard", "small": True}, {"split": "val", "small": True}),
    "QMNIST": _FLAGGED,
    "RenderedSST2": _named("train", "val"),
    # Unlike the others, it downloads by default.
    "SEMEION": ({"download": False}, None),
    "STL10": _named("train", "test"),
    "SUN397": ({}, None),
    "SVHN": _named("train", "test"),
    "StanfordCars": _named("train", "test"),
    "USPS": _FLAGGED,
}
# Data sets that torchvision cannot download.
BY_HAND = ("ImageNet",)
# Attributes with files and labels, in two lists or one; iterating over a data set would decode every photo.
FILE_LISTS = (("_image_files", "_labels"), ("_images", "_labels"), ("samples",), ("_samples",), ("imgs",))


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
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def prepare(self, cache: Path | None = None) -> None:
        """Download the data set, if that is asked for and the root is missing or empty.

        Args:
            cache: The cache folder, for a source without a root of its own.
        """
        self.splits()
        super().prepare(cache)

    def splits(self) -> tuple[Arguments, Arguments | None]:
        """Return the arguments of torchvision's class for both splits."""
        if self.name not in SPLITS:
            raise UserError(f"name: torchvision's {self.name!r} is not known here; allowed are {', '.join(SPLITS)}")
        train, validation = SPLITS[self.name]
        if validation is not None and self.validation_fraction is not None:
            raise UserError(f"validation_fraction: torchvision's {self.name} has a split of its own; leave it out")
        return train, validation

    def train(self) -> Photos:
        """List the training photos, without those that are held out."""
        photos = super().train()
        return photos if self.validation_fraction is None else self._split(photos, held=False)

    def validation(self) -> Photos:
        """List the validation photos: those of torchvision's split, or those that are held out."""
        return super().validation() if self.validation_fraction is None else self._split(super().train(), held=True)

    def _split(self, photos: Photos, held: bool) -> Photos:
        assert self.validation_fraction is not None
        chosen = hold_out(photos.names, photos.labels, photos.classes, self.validation_fraction, self.split_seed)
        return photos.subset(np.flatnonzero(chosen == held))

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

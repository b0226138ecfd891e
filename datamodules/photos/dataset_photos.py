"""Photos that a data set object returns one by one: one of torchvision, or one of the user's own."""

from __future__ import annotations

import errno
import hashlib
import operator
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from jsonargparse.typing import OpenUnitInterval
from PIL import Image

from headstart.datamodules.photos.folder_listing import in_order
from headstart.datamodules.photos.photo_source import Photos, SplitSource, require_same_classes
from headstart.datamodules.photos.picture_decoding import in_rgb, upright
from headstart.output.errors import UserError, reason_of
from headstart.output.seeds import Seed

# Attributes with the names of classes; WordNet's numbers for ImageNet, of which two classes are called crane.
CLASS_LISTS = ("wnids", "classes", "categories")


class OwnDataset(SplitSource):
    """An image data set class of your own: any `torch.utils.data.Dataset` of pairs of picture and label.

    A picture is one of PIL, or a tensor `[3, height, width]` or `[1, height, width]`, of bytes or of numbers from 0 to
    1. Leave random transforms and normalisation out. A label is a whole number or a text. The attribute `classes`, if
    there is one, names the classes of numbers. Every picture is read once when the data set is opened.

    Args:
        dataset: Path of the class, such as my_module.MyDataset.
        arguments: Its arguments for the training photos.
        validation_arguments: Its arguments for the validation photos, where they differ. By default a seeded part of
            the training photos is held out.
        validation_fraction: Share of each class that is held out if `validation_arguments` is not given.
        split_seed: Seed of that split.
    """

    def __init__(
        self,
        dataset: str,
        arguments: dict[str, Any] | None = None,
        validation_arguments: dict[str, Any] | None = None,
        validation_fraction: OpenUnitInterval = 0.2,
        split_seed: Seed = 0,
    ) -> None:
        self.dataset = dataset
        self.arguments = arguments or {}
        self.validation_arguments = validation_arguments
        self.name = dataset.rpartition(".")[2]
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, Photos | None]:
        """Read the photos of both splits."""
        train = self._open("arguments", self.arguments)
        if self.validation_arguments is None:
            return train, None
        validation = self._open("validation_arguments", {**self.arguments, **self.validation_arguments})
        require_same_classes("validation_arguments", train, validation)
        return train, validation

    def _open(self, option: str, arguments: Mapping[str, Any]) -> DatasetPhotos:
        module, _, name = self.dataset.rpartition(".")
        try:
            made = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise UserError(
                f"dataset: {self.dataset} cannot be imported ({reason_of(error)}); give module.Class"
            ) from error
        try:
            opened = made(**arguments)
        # A class of the user's own may raise anything.
        except Exception as error:
            raise UserError(f"{option}: {self.dataset} cannot be opened ({reason_of(error)})") from error
        if not (hasattr(opened, "__len__") and hasattr(opened, "__getitem__")):
            raise UserError(f"dataset: {self.dataset} has no length or no items; give a torch.utils.data.Dataset")
        return DatasetPhotos(opened, "dataset")


class DatasetPhotos(Photos):
    """Photos that a data set object returns, each known by its pixels.

    Args:
        dataset: The data set, whose items are pictures with their labels.
        option: The option that gives it, for messages.

    Raises:
        UserError: An item is something else, or cannot be read.
    """

    def __init__(self, dataset: Any, option: str = "name") -> None:  # noqa: ANN401 - any class with items
        self.dataset = dataset
        self.option = option
        self.contents: list[str] = []
        labels: list[int | str] = []
        for index in range(len(dataset)):
            picture, label = self._item(index)
            self.contents.append(_digest(picture))
            labels.append(label)

        self.classes = class_names(dataset, labels)
        if len({isinstance(label, str) for label in labels}) > 1:
            raise UserError(f"{option}: labels of {type(dataset).__name__} are numbers and texts; give one kind")
        numbers = [self.classes.index(label) if isinstance(label, str) else label for label in labels]
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(self.classes):
            raise UserError(
                f"{option}: labels of {type(dataset).__name__} are from {min(numbers)} to {max(numbers)}, and it has "
                f"{len(self.classes)} classes; give labels from 0"
            )
        self.labels = np.array(numbers, np.int64)
        self.names = [f"{self.classes[number]}/{index}" for index, number in enumerate(numbers)]

    def read(self, index: int) -> Image.Image:
        """Return one picture."""
        try:
            digest = _digest(picture := self._item(index)[0])
        except UserError:
            digest = ""
        if digest != self.contents[index]:
            raise OSError(errno.ESTALE, "its pixels have changed since they were digested; leave random transforms out")
        return picture

    def digest(self, index: int) -> str:
        """Digest the pixels of one picture."""
        return self.contents[index]

    def _item(self, index: int) -> tuple[Image.Image, int | str]:
        """Return a picture, upright and in RGB as all photos are read, and its label."""
        try:
            picture, label = self.dataset[index]
            return _picture(picture), label if isinstance(label, str) else operator.index(label)
        except OSError as error:
            raise UserError(
                f"{self.option}: item {index} of {type(self.dataset).__name__} cannot be read ({reason_of(error)})"
            ) from error
        # A class of the user's own may raise anything.
        except Exception as error:
            raise UserError(
                f"{self.option}: item {index} of {type(self.dataset).__name__} is no pair of a picture and a label "
                f"({reason_of(error)}); a picture is one of PIL, or a tensor [3, height, width] of bytes or numbers "
                "from 0 to 1, and a label a whole number or a text"
            ) from error


def _picture(picture: Any) -> Image.Image:  # noqa: ANN401 - whatever a data set returns
    """Return a picture of an item in RGB; a ValueError, TypeError or OSError if it is none."""
    if isinstance(picture, Image.Image):
        return in_rgb(upright(picture))
    if not hasattr(picture, "numpy"):
        raise TypeError(f"it begins with {type(picture).__name__}")
    values = picture.numpy(force=True)
    if values.ndim != 3 or values.shape[0] not in {1, 3}:
        raise ValueError(f"it begins with a tensor {list(values.shape)}")
    if values.dtype != np.uint8:
        if not np.issubdtype(values.dtype, np.floating) or not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"it begins with a tensor of {values.dtype} outside 0 to 1")
        values = (values * 255).round().astype(np.uint8)
    return Image.fromarray(np.moveaxis(np.broadcast_to(values, (3, *values.shape[1:])), 0, 2).copy())


def _digest(picture: Image.Image) -> str:
    return hashlib.sha256(f"{picture.mode} {picture.size}\0".encode() + picture.tobytes()).hexdigest()


def class_names(dataset: Any, labels: list[Any]) -> tuple[str, ...]:  # noqa: ANN401 - any class with items
    """Return the names of the classes: those that a data set has as an attribute, else its labels.

    Args:
        dataset: The data set.
        labels: The label of each item: all numbers from 0, or all texts.
    """
    if any(isinstance(label, str) for label in labels):
        return tuple(sorted({*map(str, labels)}, key=in_order))
    named = next((getattr(dataset, name) for name in CLASS_LISTS if getattr(dataset, name, None)), None)
    if isinstance(named, Mapping):
        # Numbers by name.
        named = sorted(named, key=named.__getitem__)
    return tuple(map(str, named or range(max(labels, default=-1) + 1)))

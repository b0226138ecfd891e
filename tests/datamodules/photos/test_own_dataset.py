"""Data set classes of one's own: pictures or tensors with labels, compared with what they were made of."""

import sys
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, UnidentifiedImageError
from torch.utils.data import Dataset

from headstart.datamodules import OwnDataset
from headstart.datamodules.photos.dataset_photos import DatasetPhotos
from headstart.datamodules.photos.photo_source import require_classes
from headstart.tests.material.photo_folders import refusal

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 4, 5, 3), np.uint8)


class Mine(Dataset[Any]):
    """Pictures in a form, and labels in a form."""

    def __init__(self, form: str = "picture", labels: str = "numbers", first: int = 0, size: int = 12) -> None:
        self.form, self.labels, self.first, self.size = form, labels, first, size
        if form == "broken":
            raise RuntimeError("a line\nand another")
        if labels == "named":
            self.classes = ["cat", "dog"]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        pixels = PIXELS[(self.first + index) % 12]
        tensor = torch.from_numpy(pixels).permute(2, 0, 1)
        picture = {
            "picture": Image.fromarray(pixels),
            "bytes": tensor,
            "floats": tensor / 255,
            "grey": tensor[:1],
            "normalised": tensor / 255 - 0.5,
            "array": pixels,
        }[self.form]
        number = index % 2
        return picture, {"texts": "ba"[number], "tensors": torch.tensor(number)}.get(self.labels, number)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("my_photos")
    mine.Mine = Mine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_photos", mine)


def test_every_form_of_pictures_and_labels() -> None:
    for form, labels, classes in (
        ("picture", "numbers", ("0", "1")),
        ("bytes", "named", ("cat", "dog")),
        ("floats", "tensors", ("0", "1")),
        ("grey", "texts", ("a", "b")),
    ):
        source = OwnDataset("my_photos.Mine", {"form": form, "labels": labels}, {"first": 2, "size": 6})
        train, validation = source.train(), source.validation()
        assert (source.name, len(train), len(validation)) == ("Mine", 12, 6)
        assert train.classes == validation.classes == classes
        expected = [1, 0] * 6 if labels == "texts" else [0, 1] * 6
        assert train.labels.tolist() == expected
        for photos, first in ((train, 0), (validation, 2)):
            for index in range(len(photos)):
                pixels = PIXELS[(first + index) % 12]
                wanted = np.repeat(pixels[..., :1], 3, 2) if form == "grey" else pixels
                assert np.array_equal(np.asarray(photos.read(index)), wanted)
    held = OwnDataset("my_photos.Mine", validation_fraction=0.5)
    assert (len(held.train()), len(held.validation())) == (6, 6)


MISTAKES: list[tuple[tuple[Any, ...], str, str]] = [
    (("nowhere.Mine",), "dataset: nowhere.Mine cannot be imported", ""),
    (("my_photos.Mine", {"form": "broken"}), "arguments: my_photos.Mine cannot be opened (a line)", ""),
    (("my_photos.Mine", {}, {"labels": "named"}), "validation_arguments: the classes of the validation photos are", ""),
    (("collections.OrderedDict",), "the training photos are of 0 class", ""),
    (("my_photos.Mine", {"form": "normalised"}), "dataset: item 0 of Mine is no pair ", "outside 0 to 1"),
    (("my_photos.Mine", {"form": "array"}), "dataset: item 0 of Mine is no pair ", "ndarray"),
]


def test_mistakes_are_one_line() -> None:
    for given, start, words in MISTAKES:
        source = OwnDataset(*given)
        assert words in refusal(lambda source=source: require_classes(source.both()[0], "training"), start=start)  # type: ignore[misc]


class Broken(list[Any]):
    """Items, of which exceptions are raised."""

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        if isinstance(item, Exception):
            raise item
        return item


def dataset_of(*items: Any) -> list[Any]:
    return Broken(items)


def test_wrong_items_are_named() -> None:
    good = Image.new("RGB", (4, 4))
    for wrong, words in (
        (UnidentifiedImageError("unknown format"), "item 1 of Broken cannot be read (unknown format)"),
        ((good, -1), "are from -1 to 0"),
        ((good, "a"), "are numbers and texts"),
        ((good, 0.5), "item 1 of Broken is no pair"),
    ):
        message = refusal(partial(DatasetPhotos, dataset_of((good, 0), wrong), "dataset"), start="dataset: ")
        assert words in message
    # A picture that breaks later is not stored as one that always was.
    items = dataset_of((good, 0), (good, 1))
    photos = DatasetPhotos(items)
    items[0] = OSError("broken")
    with pytest.raises(OSError, match="have changed since"):
        photos.read(0)


def test_pictures_are_read_as_those_of_files() -> None:
    indices = Image.fromarray(np.zeros((4, 5), np.uint8), "P")
    other = indices.copy()
    indices.putpalette([1, 2, 3])
    other.putpalette([250, 251, 252])
    turned = Image.new("RGB", (30, 40))
    turned.getexif()[274] = 6
    deep = Image.fromarray(np.full((4, 5), 32767, np.uint16))
    photos = DatasetPhotos(dataset_of((indices, 0), (other, 0), (turned, 1), (deep, 1)))
    assert len(set(photos.contents)) == 4
    assert [photos.read(index).getpixel((0, 0)) for index in (0, 1, 3)] == [(1, 2, 3), (250, 251, 252), (127,) * 3]
    assert photos.read(2).size == (40, 30)
    assert turned.size == (30, 40)

"""Copies that were changed a little are found, and photos that are different are not."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from headstart.datamodules import DrawnPets
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photos import near_duplicates
from headstart.datamodules.photos.near_duplicates import find_alike, thumbnails
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.prepared_pictures import stack

SMALL = Preprocessing(resize=64, crop=64)


def drawings(count: int) -> tuple[list[Image.Image], list[Image.Image]]:
    source = DrawnPets(count, count)
    train, validation = source.train(), source.validation()
    return [train.read(i) for i in range(count)], [validation.read(i) for i in range(count)]


def small(pictures: list[Image.Image]) -> Tensor:
    return thumbnails(stack([SMALL.prepare(picture) for picture in pictures]))


def compressed(picture: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "compressed": lambda picture: compressed(picture, 75),
    "smaller": lambda picture: picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.BICUBIC),
    "larger": lambda picture: picture.resize((picture.width * 3, picture.height * 3), Image.Resampling.BICUBIC),
    "of less contrast": lambda picture: picture.point(lambda value: 20 + value * 0.8),
}


def test_changed_copies_are_found_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "BLOCK", 300)
    train, validation = drawings(40)
    for number, change in enumerate(CHANGES.values()):
        validation[7 + number] = change(train[31 - number])
    pairs = [(31 - number, 7 + number) for number in range(len(CHANGES))]
    assert find_alike(small(validation), small(train)) == pairs
    grey = thumbnails(torch.stack([torch.full((3, 64, 64), value, dtype=torch.uint8) for value in (0, 7, 255)]))
    assert find_alike(grey, grey) == []


def test_thumbnails_are_means_of_fields() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32)).astype(np.uint8)
    fields = pixels.astype(np.float64).reshape(2, 3, 8, 4, 8, 4).mean((1, 3, 5)).reshape(2, 64)
    fields -= fields.mean(1, keepdims=True)
    expected = fields / np.linalg.norm(fields, axis=1, keepdims=True)
    assert np.allclose(thumbnails(torch.from_numpy(pixels)).numpy(), expected, atol=1e-5)


def test_they_are_warned_of_and_recorded(
    set_up: Callable[..., SampleStream], photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up(FeatureStream, orderings=1, near_duplicates=True).describe()["near_duplicate_photos"] == []
    assert "look like" not in capsys.readouterr().out
    # Unreadable photos are left out of both splits, and the indices of the others change.
    (photo_folder / "train" / "dark" / "0.jpg").write_bytes(b"none")
    (photo_folder / "validation" / "dark" / "0.jpg").write_bytes(b"neither")
    photo = Image.open(photo_folder / "train" / "light" / "4.jpg")
    photo.resize((2 * photo.width, 2 * photo.height)).save(photo_folder / "validation" / "dark" / "copy.png")
    stream = set_up(FeatureStream, orderings=1, on_bad_image="skip", near_duplicates=True)
    pair = ["train/light/4.jpg", "validation/dark/copy.png"]
    assert stream.describe()["near_duplicate_photos"] == [pair]
    line = f"WARNING: data.photos: 1 validation photos look like a training photo: {' ~ '.join(pair)}\n"
    assert line in capsys.readouterr().out

"""Rows of the store against torchvision's own transform and a direct forward pass."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification

from datamodules.photos.class_folders import ClassFolders
from datamodules.photos.photo_source import PhotoFiles, Photos
from datamodules.rows import UNREADABLE, FeatureRows, PixelRows, Precision, best_precision, pass_size
from modules.networks.backbone import Backbone, BackboneSpec
from modules.networks.preprocessing import Preprocessing


def build_backbone(resize: int, crop: int) -> Backbone:
    preparation = Preprocessing(resize=resize, crop=crop)
    return BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, preparation).build(seed=0)


def stack(chunks: PixelRows) -> NDArray[np.float32]:
    return np.concatenate(list(chunks))


def direct_features(photos: Photos, backbone: Backbone, resize: int, crop: int) -> Tensor:
    """Run the network photo by photo on what torchvision's preset makes of each."""
    preset = ImageClassification(crop_size=crop, resize_size=resize, interpolation=InterpolationMode.BILINEAR)
    with torch.no_grad():
        return torch.cat([backbone.network(preset(photos.read(i))[None]) for i in range(len(photos))])


@pytest.mark.parametrize(("resize", "crop"), [(32, 32), (40, 32), (64, 48)])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("passes", [1, 5, 24])
def test_features_equal_a_direct_pass(
    photo_folder: Path, resize: int, crop: int, workers: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datamodules.rows.pass_size", lambda side, device: passes)
    photos, backbone = ClassFolders(str(photo_folder)).train(), build_backbone(resize, crop)
    assert len({photos.read(i).size for i in range(len(photos))}) > 3
    features = stack(FeatureRows(photos, backbone, "float32", workers, ""))
    assert features.dtype == np.float32
    expected = direct_features(photos, backbone, resize, crop)
    torch.testing.assert_close(torch.from_numpy(features), expected, rtol=1e-4, atol=1e-5)


def test_bfloat16_keeps_the_direction_of_every_photo(photo_folder: Path) -> None:
    # With eight bits of mantissa single features near zero may be off by any factor, and all of a photo by a few
    # per cent in common; what a linear head makes of a photo depends on the direction of its features.
    photos, backbone = ClassFolders(str(photo_folder)).train(), build_backbone(32, 32)
    exact, coarse = (stack(FeatureRows(photos, backbone, p, 0, "")) for p in PRECISIONS)
    assert coarse.dtype == np.float32
    assert not np.array_equal(coarse, exact)
    cosine = torch.cosine_similarity(torch.from_numpy(exact), torch.from_numpy(coarse))
    assert cosine.min() > 0.99


PRECISIONS: tuple[Precision, Precision] = ("float32", "bfloat16")


class NumberedPhotos(Photos):
    """Photos whose colour is their number; some cannot be read.

    Args:
        count: Number of photos.
        unreadable: Those that cannot be read.
    """

    def __init__(self, count: int, unreadable: tuple[int, ...] = ()) -> None:
        self.names = [f"photo {i}" for i in range(count)]
        self.labels = np.arange(count) % 2
        self.classes = ("even", "odd")
        self.unreadable = unreadable

    def read(self, index: int) -> Image.Image:
        if index in self.unreadable:
            raise OSError(*(["no more bytes"] if index % 2 else []))
        return Image.new("RGB", (8, 8), (index + 1, index + 1, index + 1))

    def digest(self, index: int) -> str:
        return hashlib.sha256(f"{index} {index in self.unreadable}".encode()).hexdigest()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("count", [1, 64, 131])
def test_every_photo_in_its_row(count: int, workers: int) -> None:
    rows = PixelRows(NumberedPhotos(count), Preprocessing(resize=8, crop=4), workers, "")
    assert len(rows) == count
    pixels = stack(rows)
    assert pixels.shape == (count, 3, 4, 4)
    assert pixels.dtype == np.uint8
    assert (pixels == np.arange(1, count + 1)[:, None, None, None]).all()
    assert rows.notes == {UNREADABLE: {}}


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_photos_are_noted_and_black(workers: int) -> None:
    rows = PixelRows(NumberedPhotos(70, unreadable=(3, 66)), Preprocessing(resize=8, crop=4), workers, "")
    pixels = stack(rows)
    assert np.flatnonzero((pixels == 0).all((1, 2, 3))).tolist() == [3, 66]
    assert rows.notes == {UNREADABLE: {"photo 3": "no more bytes", "photo 66": "OSError"}}


@pytest.mark.parametrize("content", [b"", b"not a photo", None])
def test_damaged_files_are_noted(photo_folder: Path, content: bytes | None) -> None:
    path = photo_folder / "train" / "dark" / "3.jpg"
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    photos = ClassFolders(str(photo_folder)).train()
    assert isinstance(photos, PhotoFiles)
    rows = PixelRows(photos, Preprocessing(resize=8, crop=8), 0, "")
    assert len(stack(rows)) == 24
    assert list(rows.notes[UNREADABLE]) == ["train/dark/3.jpg"]


@pytest.mark.parametrize("side", [32, 64, 224, 225, 518, 5000])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_passes_are_bounded_in_pixels(side: int, device: str) -> None:
    size = pass_size(side, torch.device(device))
    bound = (4 if device == "cpu" else 256) * 224**2
    assert size >= 1
    assert size * side**2 <= bound or size == 1
    assert (size + 1) * side**2 > bound


@pytest.mark.parametrize(
    ("device", "capability", "amx", "precision"),
    [
        ("cpu", (0, 0), False, "float32"),
        ("cpu", (0, 0), True, "bfloat16"),
        ("cuda", (7, 5), True, "float32"),
        ("cuda", (8, 0), False, "bfloat16"),
        ("cuda", (9, 0), False, "bfloat16"),
        ("mps", (9, 0), True, "float32"),
    ],
)
def test_precision_by_device(
    monkeypatch: pytest.MonkeyPatch, device: str, capability: tuple[int, int], amx: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx})
    assert best_precision(torch.device(device)) == precision

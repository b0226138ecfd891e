"""Torchvision's data sets by name, laid out small as torchvision expects them."""

from __future__ import annotations

import inspect
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torchvision
from lightning.fabric.utilities.exceptions import MisconfigurationException
from numpy.typing import NDArray
from PIL import Image

from datamodules.photos import Photos
from datamodules.torchvision_dataset import SPLITS, TorchvisionDataset


def save(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 4), (value, 0, 0)).save(path)


def lay_out_food(root: Path) -> None:
    for place, kind in enumerate(("ramen", "apple_pie")):
        for number in range(3):
            save(root / "food-101" / "images" / kind / f"{number}.jpg", 80 * place + number)
    meta = root / "food-101" / "meta"
    meta.mkdir()
    for split, numbers in (("train", (2, 0)), ("test", (1,))):
        listed = {kind: [f"{kind}/{number}" for number in numbers] for kind in ("ramen", "apple_pie")}
        (meta / f"{split}.json").write_text(json.dumps(listed))


def lay_out_textures(root: Path) -> None:
    folder = root / "dtd" / "dtd"
    (folder / "labels").mkdir(parents=True)
    for split, number in (("train", 0), ("val", 1), ("test", 2)):
        for kind in ("woven", "banded"):
            save(folder / "images" / kind / f"{kind}_{number}.jpg", 40 * number)
        lines = [f"{kind}/{kind}_{number}.jpg\n" for kind in ("woven", "banded")]
        (folder / "labels" / f"{split}1.txt").write_text("".join(lines))


def lay_out_satellite(root: Path) -> None:
    for place, kind in enumerate(("Forest", "River")):
        for number in range(2):
            save(root / "eurosat" / "2750" / kind / f"{kind}_{number}.jpg", 80 * place + number)


def lay_out_digits(root: Path) -> None:
    generator = np.random.default_rng(0)
    for split, count in (("train", 6), ("t10k", 3)):
        folder = root / "MNIST" / "raw"
        folder.mkdir(parents=True, exist_ok=True)
        labels = np.arange(count, dtype=np.uint8)[::-1]
        images = generator.integers(0, 256, (count, 4, 4)).astype(np.uint8)
        write_idx(folder / f"{split}-labels-idx1-ubyte", labels)
        write_idx(folder / f"{split}-images-idx3-ubyte", images)


def write_idx(path: Path, array: NDArray[np.uint8]) -> None:
    path.write_bytes(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "Food101": lay_out_food,
    "DTD": lay_out_textures,
    "EuroSAT": lay_out_satellite,
    "MNIST": lay_out_digits,
}


def items(photos: Photos) -> list[tuple[bytes, str]]:
    return sorted((photos.read(i).tobytes(), photos.classes[label]) for i, label in enumerate(photos.labels))


@pytest.mark.parametrize("name", LAYOUTS)
def test_photos_and_labels_are_those_of_torchvision(tmp_path: Path, name: str) -> None:
    LAYOUTS[name](tmp_path)
    source = TorchvisionDataset(name, str(tmp_path))
    splits = {"train": source.train}
    if SPLITS[name][1] is not None:
        splits["validation"] = source.validation
    prints = set()
    for (kind, give), arguments in zip(splits.items(), SPLITS[name], strict=False):
        photos = give()
        dataset: Any = getattr(torchvision.datasets, name)(str(tmp_path), **(arguments or {}))
        expected = [(picture.convert("RGB").tobytes(), dataset.classes[label]) for picture, label in dataset]
        assert items(photos) == sorted(expected), kind
        assert len(set(photos.names)) == len(photos) > 0
        prints.add(photos.fingerprint())
        assert give().fingerprint() == photos.fingerprint()
    assert len(prints) == len(splits)


def test_files_are_listed_and_not_decoded(tmp_path: Path) -> None:
    lay_out_food(tmp_path)
    for path in (tmp_path / "food-101" / "images").rglob("*.jpg"):
        path.write_bytes(b"no photo")
    photos = TorchvisionDataset("Food101", str(tmp_path)).train()
    names = ["apple_pie/0.jpg", "apple_pie/2.jpg", "ramen/0.jpg", "ramen/2.jpg"]
    assert list(photos.names) == [f"food-101/images/{name}" for name in names]
    assert photos.labels.tolist() == [0, 0, 1, 1]


def test_fingerprint_follows_the_pixels_in_memory(tmp_path: Path) -> None:
    lay_out_digits(tmp_path)
    before = TorchvisionDataset("MNIST", str(tmp_path)).train().fingerprint()
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert TorchvisionDataset("MNIST", str(tmp_path)).train().fingerprint() != before


@pytest.mark.parametrize("name", SPLITS)
def test_torchvision_takes_the_arguments_of_the_splits(name: str) -> None:
    known = inspect.signature(getattr(torchvision.datasets, name).__init__).parameters
    for arguments in SPLITS[name]:
        assert set(arguments or {}) <= set(known)
    assert "download" in known
    if SPLITS[name] != ({}, None):
        assert set(SPLITS[name][0] or {}) == {"split" if "split" in known else "train"}


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(MisconfigurationException) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    message = refusal(lambda: TorchvisionDataset("ImageNet"))
    assert message.startswith("data.photos.name: torchvision's 'ImageNet' is not known here; allowed are CIFAR10, ")
    message = refusal(TorchvisionDataset("CIFAR10").train)
    assert f"there is no folder {tmp_path / 'cache' / 'datasets' / 'torchvision' / 'CIFAR10'}" in message
    assert message.endswith("data.photos.download=true")
    message = refusal(TorchvisionDataset("CIFAR10", str(tmp_path)).train)
    assert "torchvision finds no complete CIFAR10" in message
    lay_out_satellite(tmp_path)
    message = refusal(TorchvisionDataset("EuroSAT", str(tmp_path)).validation)
    assert message.startswith("data.photos.name: torchvision's EuroSAT has no validation split")


def test_nothing_is_downloaded_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(dataset: Any) -> None:
        lay_out_satellite(Path(dataset.root))

    monkeypatch.setattr(torchvision.datasets.EuroSAT, "download", fetch)
    source = TorchvisionDataset("EuroSAT")
    source.prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []
    source = TorchvisionDataset("EuroSAT", download=True)
    source.prepare(tmp_path)
    assert len(source.train()) == 4
    assert [path.name for path in (tmp_path / "datasets" / "torchvision" / "EuroSAT").iterdir()] == ["eurosat"]


def test_failed_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(dataset: Any) -> None:
        (Path(dataset.root) / "eurosat").mkdir()
        msg = "no connection\nat all"
        raise OSError(msg)

    monkeypatch.setattr(torchvision.datasets.EuroSAT, "download", fail)
    source = TorchvisionDataset("EuroSAT", str(tmp_path / "root"), download=True)
    message = refusal(source.prepare)
    assert message.startswith("data.photos.download: torchvision cannot fetch EuroSAT (no connection); ")
    assert not (tmp_path / "root").exists()

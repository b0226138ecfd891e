"""Torchvision's data sets by name, laid out small as torchvision expects them."""

import inspect
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.torchvision_dataset import BY_HAND, SPLITS, TorchvisionDataset
from headstart.tests.material.photo_folders import refusal


def save(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 4), (value, 0, 0)).save(path)


def lay_out_food(root: Path) -> None:
    for index, kind in enumerate(("ramen", "apple_pie")):
        for number in range(3):
            save(root / "food-101" / "images" / kind / f"{number}.jpg", 80 * index + number)
    meta = root / "food-101" / "meta"
    meta.mkdir()
    for split, numbers in (("train", (2, 0)), ("test", (1,))):
        listed = {kind: [f"{kind}/{number}" for number in numbers] for kind in ("ramen", "apple_pie")}
        (meta / f"{split}.json").write_text(json.dumps(listed))


def lay_out_satellite(root: Path) -> None:
    for index, kind in enumerate(("Forest", "River")):
        for number in range(2):
            save(root / "eurosat" / "2750" / kind / f"{kind}_{number}.jpg", 80 * index + number)


def lay_out_digits(root: Path) -> None:
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name, count in (("train", 6), ("t10k", 3)):
        images = np.random.default_rng(count).integers(0, 256, (count, 4, 4), np.uint8)
        for kind, array in (("labels-idx1", np.arange(count, dtype=np.uint8)[::-1]), ("images-idx3", images)):
            header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            (folder / f"{name}-{kind}-ubyte").write_bytes(header + array.tobytes())


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "Food101": lay_out_food,
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
        classes = dataset.classes
        pairs = [dataset[index] for index in range(len(dataset))]
        expected = [(picture.convert("RGB").tobytes(), classes[label]) for picture, label in pairs]
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


def test_torchvision_takes_the_arguments_of_the_splits() -> None:
    for name, splits in SPLITS.items():
        kinds = getattr(torchvision.datasets, name).__mro__
        known = {option for kind in kinds for option in inspect.signature(kind.__init__).parameters}
        for arguments in splits:
            assert set(arguments or {}) <= known, name
        assert ("download" in known) == (name not in BY_HAND), name
        own = inspect.signature(kinds[0].__init__).parameters
        assert splits[1] is None or ("split" if "split" in own else "train") in (splits[0] or {}), name


def test_classes_of_imagenet_are_distinct(tmp_path: Path) -> None:
    """The folder of ImageNet's training photos, as torchvision leaves it, with classes of the same name."""
    for kind in ("n02012849", "n03126707"):
        for split in ("train", "val"):
            save(tmp_path / split / kind / f"{kind}_1.JPEG", 7)
    names = {"n02012849": ("crane",), "n03126707": ("crane",)}
    torch.save((names, []), tmp_path / "meta.bin")
    photos = TorchvisionDataset("ImageNet", str(tmp_path)).train()
    assert photos.classes == ("n02012849", "n03126707")
    assert list(photos.names) == [f"train/{kind}/{kind}_1.JPEG" for kind in names]


def test_mistakes_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    unknown = TorchvisionDataset("FakeData")
    start = "name: torchvision's 'FakeData' is not known here; allowed are CIFAR10, "
    refusal(unknown.train, unknown.validation, start=start)
    start = f"root: there is no folder {tmp_path / 'cache' / 'datasets' / 'torchvision' / 'CIFAR10'}; "
    assert refusal(TorchvisionDataset("CIFAR10").train, start=start).endswith("download=true")
    refusal(TorchvisionDataset("CIFAR10", str(tmp_path)).train, start="root: torchvision finds no complete CIFAR10")
    lay_out_satellite(tmp_path)
    start = "validation_fraction: required, since all photos of EuroSAT are for training; "
    refusal(TorchvisionDataset("EuroSAT", str(tmp_path)).validation, start=start)
    assert len(TorchvisionDataset("EuroSAT", str(tmp_path), validation_fraction=0.5).validation()) == 2
    start = "validation_fraction: torchvision's CIFAR10 has a split of its own"
    refusal(TorchvisionDataset("CIFAR10", str(tmp_path), validation_fraction=0.3).train, start=start)
    by_hand = TorchvisionDataset("ImageNet", str(tmp_path / "none"), download=True).prepare
    refusal(by_hand, start="download: torchvision does not download ImageNet; put its archives")


def test_nothing_is_downloaded_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(dataset: Any) -> None:
        (Path(dataset.root) / "eurosat").mkdir()
        raise OSError("no connection\nat all")

    def fetch(dataset: Any) -> None:
        lay_out_satellite(Path(dataset.root))

    monkeypatch.setattr(torchvision.datasets.EuroSAT, "download", fail)
    source = TorchvisionDataset("EuroSAT", str(tmp_path / "root"), download=True)
    refusal(source.prepare, start="download: torchvision cannot fetch EuroSAT (no connection); ")
    assert list(tmp_path.iterdir()) == [tmp_path / ".root.lock"]
    (tmp_path / ".root.lock").unlink()
    monkeypatch.setattr(torchvision.datasets.EuroSAT, "download", fetch)
    source = TorchvisionDataset("EuroSAT")
    source.prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []
    source = TorchvisionDataset("EuroSAT", download=True)
    source.prepare(tmp_path)
    assert len(source.train()) == 4
    assert [path.name for path in (tmp_path / "datasets" / "torchvision" / "EuroSAT").iterdir()] == ["eurosat"]

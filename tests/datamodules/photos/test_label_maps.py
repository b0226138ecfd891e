"""Photos with label maps in folders, written here."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules import MapFolders
from headstart.datamodules.photos.photo_source import Photos, require_classes
from headstart.datamodules.row_request import ComputeSettings
from headstart.datamodules.rows import label_maps
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.photo_folders import refusal

CLASSES = ["ground", "thing", "other"]


def write(path: Path, values: NDArray[np.uint8], palette: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(values)
    if palette:
        picture.putpalette([each for value in range(256) for each in (255 - value, value, 3)])
    picture.save(path)


def photo(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=(9, 12, 3), dtype=np.uint8)


def labels(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng((seed, 1)).integers(3, size=(9, 12), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "scenes"
    for split, count in (("train", 3), ("val", 2)):
        for number in range(count):
            write(root / split / "images" / f"{number}.jpg", photo(number))
            write(root / split / "masks" / f"{number}.png", labels(number), palette=number == 1)
    return root


def read(photos: Photos) -> list[NDArray[np.uint8]]:
    assert photos.maps is not None
    return [np.asarray(photos.maps.read(index)) for index in range(len(photos))]


def test_folders(folder: Path) -> None:
    source = MapFolders(str(folder), CLASSES)
    assert source.name == "scenes"
    train = source.train()
    assert train.names == ["images/0.jpg", "images/1.jpg", "images/2.jpg"]
    assert train.classes == tuple(CLASSES)
    for number, actual in enumerate(read(train)):
        np.testing.assert_array_equal(actual, labels(number)[..., None].repeat(3, 2))
    assert len(source.validation()) == 2
    for actual, number in zip(read(train.subset(np.array([2, 0]))), (2, 0), strict=True):
        np.testing.assert_array_equal(actual[..., 0], labels(number))
    # The fingerprint follows the maps, and the digests of photos do not.
    fingerprint, digests = train.fingerprint(), train.digests()
    write(folder / "train" / "masks" / "0.png", labels(7))
    train = source.train()
    assert (train.fingerprint() == fingerprint, train.digests() == digests) == (False, True)


def test_maps_are_prepared_as_the_photos_are(folder: Path, tmp_path: Path) -> None:
    train = MapFolders(str(folder), CLASSES).train()
    assert train.maps is not None
    resources = ComputeSettings(tmp_path / "cache", "maps", 0)
    prepared = label_maps(Preprocessing(resize=9, crop=6), train.maps, resources).rows
    assert prepared.dtype == np.uint8
    # The centre, cut by hand.
    np.testing.assert_array_equal(prepared, np.stack([labels(number)[2:8, 3:9] for number in range(3)]))
    larger = label_maps(Preprocessing(resize=18, crop=12), train.maps, resources).rows
    np.testing.assert_array_equal(larger[0], labels(0).repeat(2, 0).repeat(2, 1)[3:15, 6:18])


def test_maps_that_are_none(folder: Path) -> None:
    path, source = folder / "train" / "masks" / "2.png", MapFolders(str(folder), CLASSES)
    for values, reason in (
        (photo(0), "a label map has one channel of 8 bits, grey or with a palette, not RGB"),
        (np.full((9, 12), 3, np.uint8), "label 3 is none of the 3 classes from 0, nor 255"),
    ):
        write(path, values)
        with pytest.raises(OSError, match=reason):
            read(source.train())
    write(path, np.full((9, 12), 255, np.uint8))
    assert (read(source.train())[2] == 255).all()


def test_mistakes_in_folders(folder: Path, tmp_path: Path) -> None:
    source = MapFolders(str(folder), CLASSES)
    refusal(MapFolders(str(tmp_path / "none"), CLASSES).train, start="root: there is no folder")
    refusal(MapFolders(str(folder), ["ground"]).train, start="classes: ground given; two or more are needed")
    message = refusal(lambda: require_classes(source.train(), "training"))
    assert "have a class for every pixel, but the command needs one per photo" in message
    (folder / "train" / "masks" / "0.png").unlink()
    assert "it has 5 files, of which 1 are without a partner: 0" in refusal(source.train, start="root: ")
    (folder / "val").rename(folder / "test")
    (folder / "train" / "masks" / "0.png").write_bytes(b"")
    assert "must hold validation or val; it holds test/, train/" in refusal(source.validation, start="root: ")

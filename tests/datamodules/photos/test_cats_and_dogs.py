"""Cats and dogs in both layouts."""

from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.cats_and_dogs import CatsAndDogs
from headstart.tests.material.photo_folders import lay_out, refusal
from headstart.tests.material.root import shared_data

TRAIN = ["train/cats/cat.2.jpg", "train/cats/cat.10.jpg", "train/dogs/dog.0.jpg"]
VALIDATION = ["validation/cats/cat.3.jpg", "validation/dogs/dog.4.jpg"]
FOLDERS = TRAIN + VALIDATION


def flat(cats: int, dogs: int) -> list[str]:
    return [f"train/{kind}.{i}.jpg" for kind, count in (("cat", cats), ("dog", dogs)) for i in range(count)]


@pytest.mark.parametrize("top", ["", "cats_and_dogs_filtered"])
def test_folder_layout(tmp_path: Path, top: str) -> None:
    lay_out(tmp_path / top, *FOLDERS, "vectorize.py")
    source = CatsAndDogs(str(tmp_path))
    train, validation = source.train(), source.validation()
    assert train.classes == validation.classes == ("cats", "dogs")
    assert (train.names, train.labels.tolist()) == (TRAIN, [0, 0, 1])
    assert (validation.names, validation.labels.tolist()) == (VALIDATION, [0, 1])


def test_flat_layout_is_split_by_class(tmp_path: Path) -> None:
    others = "train/._cat.1.jpg", "train/Thumbs.db", "test1/1.jpg", "train/birds/cat.1.jpg"
    source = CatsAndDogs(lay_out(tmp_path, *flat(30, 12), *others))
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [20, 8]
    assert np.bincount(validation.labels).tolist() == [10, 4]
    assert sorted([*train.names, *validation.names]) == sorted(flat(30, 12))
    assert train.left_out == {"train/Thumbs.db": ".db", "train/birds/cat.1.jpg": "photo in a nested folder"}
    for photos in (train, validation):
        assert all(("dog." in name) == label for name, label in zip(photos.names, photos.labels, strict=True))
        assert photos.classes == ("cats", "dogs")


def test_a_flat_split_stays_what_it_is_and_lacks_no_class(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "twelve", *flat(12, 12))
    held = CatsAndDogs(root, validation_fraction=0.25).validation().names
    assert [name[6:-4] for name in held] == ["cat.1", "cat.3", "cat.6", "dog.3", "dog.9", "dog.10"]
    root = lay_out(tmp_path / "eight", *flat(8, 8))
    for fraction, size in ((0.001, 2), (0.999, 14)):
        source = CatsAndDogs(root, validation_fraction=fraction)
        assert (len(source.validation()), len(source.train())) == (size, 16 - size)


def test_unusable_folders(tmp_path: Path) -> None:
    mistakes = {
        "of which 2 do": ["a/train/cats/cat.0.jpg", "b/train/cats/cat.0.jpg"],
        "it holds neither": ["train/birds/bird.0.jpg"],
        "it holds both": [*FOLDERS, "train/cat.0.jpg"],
        "those with photos are birds, cats, dogs": [*FOLDERS, "train/birds/bird.0.jpg"],
        "class cats needs two or more photos, to hold some out for validation; it has 1": flat(1, 9),
        "1 have another name (cat.0 copy.jpg)": [*flat(9, 9), "train/cat.0 copy.jpg"],
    }
    for number, (reason, names) in enumerate(mistakes.items()):
        source = CatsAndDogs(lay_out(tmp_path / str(number), *names))
        assert reason in refusal(source.train, source.validation, start=f"root: {tmp_path / str(number)}")


def test_public_photos() -> None:
    source = CatsAndDogs(str(shared_data("cats_and_dogs")))
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [1000, 1000]
    assert np.bincount(validation.labels).tolist() == [500, 500]
    assert {train.read(index).mode for index in (0, 999, 1000, 1999)} == {"RGB"}
    assert not {Path(name).name for name in train.names} & {Path(name).name for name in validation.names}

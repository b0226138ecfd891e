"""Cats and dogs in both layouts, and from a downloaded archive."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules.photos.cats_and_dogs import CatsAndDogs
from headstart.output.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("HEADSTART_SHARED") or ROOT.parent / "shared") / "data" / "cats_and_dogs"
TRAIN = ["train/cats/cat.2.jpg", "train/cats/cat.10.jpg", "train/dogs/dog.0.jpg"]
VALIDATION = ["validation/cats/cat.3.jpg", "validation/dogs/dog.4.jpg"]
FOLDERS = TRAIN + VALIDATION


def lay_out(root: Path, *names: str, **options: Any) -> CatsAndDogs:
    """Create files that are no photos: nothing may be decoded while listing."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return CatsAndDogs(str(root), **options)


def flat(cats: int, dogs: int) -> list[str]:
    return [f"train/{kind}.{i}.jpg" for kind, count in (("cat", cats), ("dog", dogs)) for i in range(count)]


def refusal(source: CatsAndDogs) -> str:
    """Return the error message that both splits raise."""
    messages = set()
    for listing in (source.train, source.validation):
        with pytest.raises(UserError) as caught:
            listing()
        messages.add(str(caught.value))
    (message,) = messages
    assert "\n" not in message
    assert message.startswith("root: ")
    assert str(source.root) in message
    return message


@pytest.mark.parametrize("top", ["", "cats_and_dogs_filtered"])
def test_folder_layout(tmp_path: Path, top: str) -> None:
    lay_out(tmp_path / top, *FOLDERS)
    (tmp_path / top / "vectorize.py").touch()
    source = CatsAndDogs(str(tmp_path))
    train, validation = source.train(), source.validation()
    assert train.classes == validation.classes == ("cats", "dogs")
    assert train.names == TRAIN
    assert train.labels.tolist() == [0, 0, 1]
    assert validation.names == VALIDATION
    assert validation.labels.tolist() == [0, 1]


def test_flat_layout_is_split_by_class(tmp_path: Path) -> None:
    source = lay_out(
        tmp_path, *flat(30, 12), "train/._cat.1.jpg", "train/Thumbs.db", "test1/1.jpg", "train/birds/cat.1.jpg"
    )
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [20, 8]
    assert np.bincount(validation.labels).tolist() == [10, 4]
    assert sorted([*train.names, *validation.names]) == sorted(flat(30, 12))
    assert train.left_out == {"train/Thumbs.db": ".db", "train/birds/cat.1.jpg": "photo in a nested folder"}
    for photos in (train, validation):
        assert all(("dog." in name) == label for name, label in zip(photos.names, photos.labels, strict=True))
        assert photos.classes == ("cats", "dogs")


def test_flat_split_stays_what_it_is(tmp_path: Path) -> None:
    source = lay_out(tmp_path, *flat(12, 12), validation_fraction=0.25)
    assert [name[6:-4] for name in source.validation().names] == [
        "cat.1",
        "cat.3",
        "cat.6",
        "dog.3",
        "dog.9",
        "dog.10",
    ]


@pytest.mark.parametrize(("fraction", "held_out"), [(0.001, 2), (0.999, 14)])
def test_neither_part_of_a_flat_split_lacks_a_class(tmp_path: Path, fraction: float, held_out: int) -> None:
    source = lay_out(tmp_path, *flat(8, 8), validation_fraction=fraction)
    assert len(source.validation()) == held_out
    assert len(source.train()) == 16 - held_out


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a/train/cats/cat.0.jpg", "b/train/cats/cat.0.jpg"], "of which 2 do"),
        (["train/birds/bird.0.jpg"], "it holds neither"),
        ([*FOLDERS, "train/cat.0.jpg"], "it holds both"),
        ([*FOLDERS, "train/birds/bird.0.jpg"], "those with photos are birds, cats, dogs"),
        (flat(1, 9), "class cats needs two or more photos, to hold some out for validation; it has 1"),
        ([*flat(9, 9), "train/cat.0 copy.jpg"], "1 have another name (cat.0 copy.jpg)"),
    ],
)
def test_unusable_folders(tmp_path: Path, names: list[str], reason: str) -> None:
    assert reason in refusal(lay_out(tmp_path, *names))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the photos are not there; HEADSTART_SHARED names their folder")
def test_public_photos() -> None:
    source = CatsAndDogs(str(SHARED))
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [1000, 1000]
    assert np.bincount(validation.labels).tolist() == [500, 500]
    for index in (0, 999, 1000, 1999):
        assert train.read(index).mode == "RGB"
    assert not {Path(name).name for name in train.names} & {Path(name).name for name in validation.names}

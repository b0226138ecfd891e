"""Class folders without a split."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.class_folders import ClassFolders, UnsplitClassFolders
from headstart.output.errors import UserError


def test_all_photos_are_for_training(photo_folder: Path) -> None:
    source = UnsplitClassFolders(str(photo_folder / "train"))
    photos, split = source.train(), ClassFolders(str(photo_folder)).train()
    assert source.name == "train"
    assert [f"train/{name}" for name in photos.names] == list(split.names)
    assert photos.labels.tolist() == split.labels.tolist()
    assert photos.classes == split.classes
    assert photos.read(3).tobytes() == split.read(3).tobytes()


def refusal(source: UnsplitClassFolders) -> str:
    with pytest.raises(UserError) as caught:
        source.train()
    message = str(caught.value)
    assert message.startswith("root: ")
    assert "\n" not in message
    return message


def test_mistakes_are_reported(tmp_path: Path) -> None:
    assert "there is no folder" in refusal(UnsplitClassFolders(str(tmp_path / "nowhere")))
    (tmp_path / "ant").mkdir()
    assert refusal(UnsplitClassFolders(str(tmp_path))).endswith(
        "those with photos are none; left out: folder without photos (1)"
    )
    (tmp_path / "bee").mkdir()
    assert "left out: folder without photos (2)" in refusal(UnsplitClassFolders(str(tmp_path)))


def test_validation_photos_are_held_out_on_request(photo_folder: Path) -> None:
    root = str(photo_folder / "train")
    whole = UnsplitClassFolders(root)
    with pytest.raises(UserError, match=r"^validation_fraction: required, .* such as 0\.2"):
        whole.validation()
    source = UnsplitClassFolders(root, validation_fraction=0.25, split_seed=1)
    train, validation = source.train(), source.validation()
    assert sorted([*train.names, *validation.names]) == sorted(whole.train().names)
    assert train.classes == validation.classes == whole.train().classes
    sizes = np.bincount(whole.train().labels)
    assert np.bincount(validation.labels).tolist() == [round(size / 4) for size in sizes]
    assert validation.names != UnsplitClassFolders(root, 0.25, 2).validation().names


def test_held_out_photos_are_those_of_the_smallest_digests(photo_folder: Path) -> None:
    source = UnsplitClassFolders(str(photo_folder / "train"), validation_fraction=0.25, split_seed=3)
    for label in (0, 1):
        whole = UnsplitClassFolders(str(photo_folder / "train")).train()
        names = [name for name, number in zip(whole.names, whole.labels, strict=True) if number == label]
        ranked = sorted(names, key=lambda name: hashlib.sha256(f"3/{name}".encode()).digest())
        held = source.validation()
        chosen = [name for name, number in zip(held.names, held.labels, strict=True) if number == label]
        assert set(chosen) == set(ranked[: len(chosen)])

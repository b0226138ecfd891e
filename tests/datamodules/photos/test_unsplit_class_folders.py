"""Class folders without a split."""

from __future__ import annotations

from pathlib import Path

import pytest

from datamodules.photos.class_folders import ClassFolders
from datamodules.photos.unsplit_class_folders import UnsplitClassFolders
from output.errors import UserError


def test_all_photos_are_for_training(photo_folder: Path) -> None:
    source = UnsplitClassFolders(str(photo_folder / "train"))
    photos, split = source.train(), ClassFolders(str(photo_folder)).train()
    assert source.name == "train"
    assert [f"train/{name}" for name in photos.names] == list(split.names)
    assert photos.labels.tolist() == split.labels.tolist()
    assert photos.classes == split.classes
    assert photos.read(3).tobytes() == split.read(3).tobytes()


def refusal(source: UnsplitClassFolders, validation: bool = False) -> str:
    with pytest.raises(UserError) as caught:
        source.validation() if validation else source.train()
    message = str(caught.value)
    assert message.startswith("root: ")
    assert "\n" not in message
    return message


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    assert "there is no folder" in refusal(UnsplitClassFolders(str(tmp_path / "nowhere")))
    (tmp_path / "ant").mkdir()
    assert refusal(UnsplitClassFolders(str(tmp_path))).endswith("two or more classes; it holds ant")
    (tmp_path / "bee").mkdir()
    assert "ant must hold photos" in refusal(UnsplitClassFolders(str(tmp_path)))
    assert "training photos only" in refusal(UnsplitClassFolders(str(tmp_path)), validation=True)

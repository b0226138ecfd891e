"""Photos in class folders are listed in one order, and what is wrong is said before anything is decoded."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.class_folders import ClassFolders, UnsplitClassFolders
from headstart.datamodules.photos.folder_listing import count_kinds
from headstart.tests.material.photo_folders import lay_out, refusal

TRAIN = ["train/ant/1.jpg", "train/bee/1.jpg", "train/cow/1.jpg"]
VALIDATION = ["validation/ant/2.jpg", "validation/bee/2.jpg", "validation/cow/2.jpg"]
LAYOUT = TRAIN + VALIDATION


def test_any_number_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for validation in ("validation", "val"):
        names = [name.replace("validation", validation) for name in LAYOUT]
        monkeypatch.chdir(lay_out(tmp_path / validation / "animals", *reversed(names)))
        # A folder whose name is that of a photo is none.
        Path("train/ant/folder.jpg").mkdir()
        for source in (ClassFolders(os.curdir), ClassFolders(str(tmp_path / validation / "animals"))):
            train, held_out = source.train(), source.validation()
            assert source.name == "animals"
            assert train.classes == held_out.classes == ("ant", "bee", "cow")
            assert (list(train.names), list(held_out.names)) == (names[:3], names[3:])
            assert train.labels.tolist() == held_out.labels.tolist() == [0, 1, 2]


def test_order_follows_numbers_not_the_file_system(tmp_path: Path) -> None:
    numbers = ["10.jpg", "2.jpg", "a.jpg", "a10b1.jpg", "1.jpg", "a2b10.jpg", "02.jpg", "a2b1.jpg"]
    lay_out(tmp_path, *LAYOUT, *(f"train/dog/{name}" for name in numbers), "validation/dog/1.jpg")
    train = ClassFolders(str(tmp_path)).train()
    listed = [name.rpartition("/")[2] for name in train.names if name.startswith("train/dog")]
    assert listed == ["1.jpg", "02.jpg", "2.jpg", "10.jpg", "a2b1.jpg", "a2b10.jpg", "a10b1.jpg", "a.jpg"]


def test_left_out_files_are_counted_by_reason(tmp_path: Path) -> None:
    names = ["ant/a.svg", "ant/b.SVG", "bee/notes", "bee/deep/1.jpg", "bee/deep/er/2.txt", "stray.jpg", "read.me"]
    hidden = "bee/.hidden.svg", ".cache/1.jpg"
    lay_out(tmp_path, *LAYOUT, *(f"train/{name}" for name in (*names, *hidden, "cow/1.webp")))
    source = ClassFolders(str(tmp_path))
    cow = tmp_path / "train" / "cow"
    (cow / "lost.jpg").symlink_to("nowhere.jpg")
    (tmp_path.parent / "outside.jpg").touch()
    (cow / "out.jpg").symlink_to(tmp_path.parent / "outside.jpg")
    (cow / "again.jpg").symlink_to("../ant/1.jpg")
    (cow / "loop").symlink_to("..")
    (cow / "self.jpg").symlink_to("self.jpg")
    (tmp_path / "train" / "none").mkdir()
    train = source.train()
    assert count_kinds(train.left_out) == {
        ".svg": 2,
        "link loop": 2,
        ".me": 1,
        ".txt": 1,
        "dangling link": 1,
        "folder without photos": 1,
        "link out of the folder": 1,
        "photo beside the class folders": 1,
        "photo in a nested folder": 1,
        "without an ending": 1,
    }
    assert train.subset(np.array([0])).left_out == train.left_out
    assert {"train/cow/1.webp", "train/cow/again.jpg"} < set(train.names)
    assert source.validation().left_out == {}


def test_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    source = ClassFolders(lay_out(tmp_path, *LAYOUT))
    monkeypatch.setattr(os, "scandir", refuse)
    assert refusal(source.train).startswith(f"root: {tmp_path} cannot be read (Permission denied); make it readable")


def test_what_is_no_data_set_is_named(tmp_path: Path) -> None:
    mistakes = {
        "absent": ((), "there is no folder"),
        "one split": (TRAIN, "it holds train/"),
        "two validation folders": ([*LAYOUT, "val/ant/1.jpg"], "train/, val/, validation/"),
        "one class": ((TRAIN[0], VALIDATION[0]), "of two or more classes in a folder each; those with photos are ant"),
        "none": (("train/1.jpg", "validation/2.jpg"), "are none; left out: photo beside the class folders (1)"),
        "another class": ([*LAYOUT, "validation/dog/1.jpg"], "those with photos are ant, bee, cow, dog"),
    }
    for name, (files, words) in mistakes.items():
        source = ClassFolders(lay_out(tmp_path / name, *files))
        assert words in refusal(source.train, source.validation, start="root: ")


def test_a_seeded_part_of_unsplit_folders_is_held_out(photo_folder: Path) -> None:
    root = str(photo_folder / "train")
    whole, split = UnsplitClassFolders(root), ClassFolders(str(photo_folder)).train()
    assert "required, since all photos of train are" in refusal(whole.validation, start="validation_fraction: ")
    photos = whole.train()
    assert ([f"train/{name}" for name in photos.names], photos.classes) == (list(split.names), split.classes)
    assert photos.labels.tolist() == split.labels.tolist()

    source = UnsplitClassFolders(root, validation_fraction=0.25, split_seed=3)
    train, validation = source.train(), source.validation()
    assert sorted([*train.names, *validation.names]) == sorted(photos.names)
    assert train.classes == validation.classes == photos.classes
    for label in (0, 1):
        names, chosen = (
            [part.names[i] for i in np.flatnonzero(part.labels == label).tolist()] for part in (photos, validation)
        )
        # Those of the smallest digests.
        ranked = sorted(names, key=lambda name: hashlib.sha256(f"3/{name}".encode()).digest())
        assert set(chosen) == set(ranked[: round(len(names) / 4)])
    assert validation.names != UnsplitClassFolders(root, 0.25, 2).validation().names


def test_empty_class_folders_are_left_out_of_both_splits(tmp_path: Path) -> None:
    source = ClassFolders(lay_out(tmp_path, *LAYOUT))
    (tmp_path / VALIDATION[1]).rename(tmp_path / "validation" / "bee" / "2.txt")
    assert "exactly the classes ant, bee, cow in a folder each; those with photos are ant, cow" in refusal(
        source.train, source.validation
    )
    (tmp_path / TRAIN[1]).unlink()
    assert source.train().classes == source.validation().classes == ("ant", "cow")
    assert source.validation().left_out == {"validation/bee/2.txt": ".txt", "validation/bee": "folder without photos"}

"""Rows are computed once for every picture, in any order and company; what cannot be computed leaves none."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headstart.datamodules import decoding, rows
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.row_policy import Resources
from headstart.output.errors import UserError
from headstart.tests.material.stored_rows import SMALL, WAYS, Find


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_subsets_and_orders_share_the_rows_of_the_whole(
    photos: Photos, tmp_path: Path, computed: list[int], way: str
) -> None:
    find = WAYS[way]
    whole = find(photos, tmp_path / "whole")
    assert computed == [24]
    for indices in ([3, 4, 5], [7, 0, 23], list(range(23, -1, -1))):
        part = find(photos.subset(np.array(indices)), tmp_path / "whole")
        assert np.array_equal(part.rows, whole.rows[indices])
        assert part.notes == whole.notes
    assert computed == [24]
    # Bit for bit the same, whichever rows were computed together.
    for indices in ([5], [2, 9, 5, 11], list(range(24))):
        part = find(photos.subset(np.array(indices)), tmp_path / "parts")
        assert np.array_equal(part.rows, whole.rows[indices])
    assert computed == [24, 1, 3, 20]


@pytest.mark.parametrize("way", WAYS)
def test_rows_in_order_are_memory_mapped(photos: Photos, tmp_path: Path, way: str) -> None:
    for _ in range(2):
        assert isinstance(WAYS[way](photos, tmp_path).rows, np.memmap)


def test_a_photo_is_found_under_any_name(photo_folder: Path, find: Find, computed: list[int]) -> None:
    first = find(ClassFolders(str(photo_folder)).train())
    (photo_folder / "train").rename(photo_folder / "learn")
    (photo_folder / "learn" / "dark").rename(photo_folder / "learn" / "abyss")
    for path in list((photo_folder / "learn" / "light").iterdir()):
        path.rename(path.with_name(f"a{path.name}"))
    (photo_folder / "validation" / "dark").rename(photo_folder / "validation" / "abyss")
    (photo_folder / "learn").rename(photo_folder / "train")
    moved = photo_folder.rename(photo_folder.with_name("moved"))
    again = find(ClassFolders(str(moved)).train())
    assert computed == [24]
    assert sorted(map(bytes, np.asarray(first.rows))) == sorted(map(bytes, np.asarray(again.rows)))


def test_equal_photos_are_computed_once(photo_folder: Path, find: Find, computed: list[int]) -> None:
    files = sorted((photo_folder / "train" / "dark").iterdir())
    for path in files[1:]:
        path.write_bytes(files[0].read_bytes())
    result = find(ClassFolders(str(photo_folder)).train())
    assert computed == [13]
    assert (result.rows[:12] == result.rows[0]).all()


@pytest.mark.parametrize("way", ["features", "pixels"])
def test_photo_that_cannot_be_read_at_the_moment_is_computed_next_time(
    photos: Photos, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Photos, index: int) -> Image.Image:
        raise OSError(errno.EIO, "Input/output error")

    fail.__module__, fail.__qualname__ = type(photos).read.__module__, type(photos).read.__qualname__
    with monkeypatch.context() as patched:
        patched.setattr(type(photos), "read", fail)
        with pytest.raises(UserError, match="cannot be read at the moment"):
            WAYS[way](photos, tmp_path)
    assert not WAYS[way](photos, tmp_path).remarks


def test_a_changed_photo_is_computed_anew(photos: Photos, photo_folder: Path, find: Find, computed: list[int]) -> None:
    before = find(photos)
    path = photo_folder / photos.names[5]
    path.write_bytes(path.read_bytes() + b"\0")  # still the same pixels
    after = find(ClassFolders(str(photo_folder)).train())
    assert computed == [24, 1]
    assert np.array_equal(before.rows, after.rows)


@pytest.mark.parametrize("way", ["features", "pixels"])
def test_unreadable_photo_until_it_is_mended(photo_folder: Path, tmp_path: Path, computed: list[int], way: str) -> None:
    source, find = ClassFolders(str(photo_folder)), WAYS[way]
    name = "train/dark/3.jpg"
    intact = (photo_folder / name).read_bytes()
    (photo_folder / name).write_bytes(intact[:100])
    index = source.train().names.index(name)
    for indices in (range(24), range(23, -1, -1), [index], range(24)):
        result = find(source.train().subset(np.array(indices)), tmp_path)
        assert list(result.remarks) == [list(indices).index(index)]
    assert computed == [24]
    assert not find(source.train().subset(np.array([index + 1])), tmp_path).remarks
    (photo_folder / name).write_bytes(intact)
    mended = find(source.train(), tmp_path)
    assert not mended.remarks
    assert computed == [24, 1]
    assert np.array_equal(mended.rows, find(source.train(), tmp_path / "fresh").rows)


def test_unreadable_photo_is_refused_and_nothing_is_kept(photo_folder: Path, find: Find, computed: list[int]) -> None:
    source = ClassFolders(str(photo_folder))
    path = photo_folder / "train" / "dark" / "3.jpg"
    intact = path.read_bytes()
    path.write_bytes(b"damaged")
    for _ in range(2):
        with pytest.raises(UserError, match=r"'train/dark/3\.jpg' cannot be decoded"):
            find(source.train())
    path.write_bytes(intact)
    find(source.train())
    assert computed == [24, 24, 24]


def test_interrupted_computation_leaves_nothing(
    photos: Photos, find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = photos.subset(np.arange(4))
    find(first)
    before = sorted((tmp_path / "cache").glob("*/*/*"))
    read = type(photos).read

    def interrupted(self: Photos, index: int) -> Image.Image:
        if index == 20:
            raise KeyboardInterrupt
        return read(self, index)

    interrupted.__module__, interrupted.__qualname__ = read.__module__, read.__qualname__
    monkeypatch.setattr(type(photos), "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find(photos)
    assert sorted((tmp_path / "cache").glob("*/*/*")) == before
    monkeypatch.undo()
    assert find(photos).computed == 20


def test_only_the_asked_for_photos_are_read(photo_folder: Path, find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = ClassFolders(str(photo_folder)).train()
    for name in photos.names[6:]:
        (photo_folder / name).unlink()
    assert len(find(photos.subset(np.arange(6))).rows) == 6


def die(self: Photos, index: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_no_room(self: torch.Tensor) -> None:
    raise RuntimeError("unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)")


@pytest.mark.parametrize(
    ("target", "failure", "reason"),
    [
        (
            "headstart.datamodules.photos.photo_source.PhotoFiles.read",
            die,
            "killed by signal: Killed|exited unexpectedly",
        ),
        ("torch.Tensor.share_memory_", find_no_room, "No space left on device"),
    ],
)
def test_end_of_a_decoding_process_is_reported_in_one_line(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, failure: Any, reason: str
) -> None:
    monkeypatch.setattr(target, failure)
    message = rf"^num_workers: a process that decodes pictures stopped \(.*({reason}).*\); computed rows are"
    with pytest.raises(UserError, match=message) as caught:
        rows.pixels(SMALL, photos, Resources(tmp_path, "pixels", 1))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_one_process_decodes_where_shared_memory_is_short(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "share_memory", lambda workers, batch, held, most: (0, most))
    monkeypatch.setattr("headstart.datamodules.photos.photo_source.PhotoFiles.read", in_process(os.getpid()))
    assert len(rows.pixels(SMALL, photos, Resources(tmp_path, "pixels", 8)).rows) == len(photos)


def in_process(expected: int) -> Callable[..., Image.Image]:
    def read(self: Photos, index: int) -> Image.Image:
        assert os.getpid() == expected
        return Image.new("RGB", (32, 32))

    return read

"""Rows are computed once for every picture, in any order and company; what cannot be computed leaves none."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headstart.datamodules import row_request
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.row_computation import unpack
from headstart.datamodules.row_request import ComputeSettings, RowRequest, require_readable
from headstart.datamodules.rows import find
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.freeze_boundary import cut
from headstart.output.errors import UserError
from headstart.store.gathered_rows import GatheredRows
from headstart.tests.material.stored_rows import (
    NETWORK,
    SMALL,
    WAYS,
    NumberedPhotos,
    features_of,
    find_in,
    parts_in,
)


@pytest.mark.parametrize("way", WAYS)
def test_rows_equal_a_plain_loop(photos: Photos, tmp_path: Path, way: str) -> None:
    backbone = build_backbone(NETWORK)
    with torch.no_grad():
        pixels = [
            torch.from_numpy(np.array(SMALL.prepare(photos.read(i)))).permute(2, 0, 1) for i in range(len(photos))
        ]
        stored = find_in(tmp_path, WAYS[way](photos))
        rows = torch.from_numpy(np.array(stored.rows))
        if way == "pixels":
            assert torch.equal(rows, torch.stack(pixels))
            assert torch.equal(rows, torch.from_numpy(np.array(find_in(tmp_path / "2", WAYS[way](photos), 2).rows)))
            return
        if way == "activations":
            expected, rows = cut(backbone, "features.14").stem(torch.stack(pixels)), unpack(rows, stored.notes)
        else:
            # The last columns of the embeddings are those of the inputs of the classifier.
            expected, rows = torch.cat([backbone(each[None]) for each in pixels]), rows[:, -1280:]
    torch.testing.assert_close(rows, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_subsets_and_orders_share_the_rows_of_the_whole(
    photos: Photos, tmp_path: Path, computed: list[int], way: str
) -> None:
    whole = find_in(tmp_path / "whole", WAYS[way](photos))
    assert computed == [24]
    for indices in ([3, 4, 5], [7, 0, 23], list(range(23, -1, -1)), [2, 2]):
        part = find_in(tmp_path / "whole", WAYS[way](photos.subset(np.array(indices))))
        assert np.array_equal(part.rows, whole.rows[indices])
        assert (part.notes, part.computed) == (whole.notes, 0)
    assert computed == [24]
    # Bit for bit the same, whichever rows were computed together.
    for indices in ([2, 9, 5, 11], list(range(24))):
        part = find_in(tmp_path / "parts", WAYS[way](photos.subset(np.array(indices))))
        assert np.array_equal(part.rows, whole.rows[indices])
    assert computed == [24, 4, 20]


def test_parts_follow_from_all_pictures_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    request = features_of(NumberedPhotos(0))
    for count, row_bytes in ((10, 1), (1000, 5120), (10**6, 16), (1000, 10**6), (50, 10**9)):
        digests = np.broadcast_to(np.array([b"x"], "S32"), count)
        whole = request.cut(digests, np.arange(count), row_bytes)
        sizes = [len(part) for part in whole]
        assert np.array_equal(np.concatenate(whole), np.arange(count))
        assert max(sizes) <= 4096
        assert max(sizes) == 1 or max(sizes) * row_bytes <= 2**26
        assert max(sizes) >= min(count, 64) or (max(sizes) + 1) * row_bytes > 2**26
        # Another process, which finds some rows, cuts at the same places.
        missing = np.flatnonzero(np.random.default_rng(0).random(count) < 0.3)
        limits = [{*(part // sizes[0])} for part in request.cut(digests, missing, row_bytes)]
        assert sum(map(len, limits)) == len(limits) == len(set.union(*limits))


def test_many_parts_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]) -> None:
    photos = NumberedPhotos(150)
    request = RowRequest(photos, SMALL)
    whole = find_in(tmp_path / "whole", request)
    assert [len(parts_in(tmp_path / "whole")), computed] == [3, [64, 64, 22]]
    monkeypatch.setattr(row_request, "PART_BYTES", 20 * 3 * 32**2)  # 20 rows
    small = find_in(tmp_path / "small", request)
    assert len(parts_in(tmp_path / "small")) == 8
    assert np.array_equal(whole.rows, small.rows)
    mapped = find(request, ComputeSettings(tmp_path / "small", "", 0), copied=0)
    assert isinstance(mapped.rows, GatheredRows)
    assert np.array_equal(mapped.rows[:], whole.rows)
    parts_in(tmp_path / "small")[3].unlink()
    assert find_in(tmp_path / "small", request).computed in (10, 20)


def test_a_photo_is_found_by_its_content(photo_folder: Path, tmp_path: Path, computed: list[int]) -> None:
    files = sorted((photo_folder / "train" / "dark").iterdir())
    for path in files[1:]:
        path.write_bytes(files[0].read_bytes())
    source = ClassFolders(str(photo_folder))
    first = find_in(tmp_path, features_of(source.train()))
    # Equal photos are computed once.
    assert computed == [13]
    assert (first.rows[:12] == first.rows[0]).all()

    light = sorted((photo_folder / "train" / "light").iterdir())
    for path in light:
        path.rename(path.with_name(f"a{path.name}"))
    moved = photo_folder.rename(photo_folder.with_name("moved"))
    again = find_in(tmp_path, features_of(ClassFolders(str(moved)).train()))
    assert computed == [13]
    assert sorted(map(bytes, np.asarray(first.rows))) == sorted(map(bytes, np.asarray(again.rows)))

    changed = moved / "train" / "light" / f"a{light[0].name}"
    changed.write_bytes(changed.read_bytes() + b"\0")  # still the same pixels
    after = find_in(tmp_path, features_of(ClassFolders(str(moved)).train()))
    assert computed == [13, 1]
    assert np.array_equal(again.rows, after.rows)

    # Only the photos that are asked for are read.
    photos = ClassFolders(str(moved)).train()
    for name in photos.names[6:]:
        (moved / name).unlink()
    assert len(find_in(tmp_path / "other", features_of(photos.subset(np.arange(6)))).rows) == 6


def test_no_photo_is_opened_when_nothing_is_to_do(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The files are as old as others are.
    monkeypatch.setattr("headstart.store.file_digests.is_settled", lambda *_: True)
    first = find_in(tmp_path, features_of(ClassFolders(str(photo_folder)).train()))
    monkeypatch.setattr(PhotoFiles, "open", lambda *_: pytest.fail("a photo is opened"))
    monkeypatch.setattr("headstart.store.file_digests.digest_file", lambda path: pytest.fail(f"{path} is read"))
    again = find_in(tmp_path, features_of(ClassFolders(str(photo_folder)).train()))
    assert np.array_equal(again.rows, first.rows)


def test_unreadable_photo_until_it_is_mended(photo_folder: Path, tmp_path: Path, computed: list[int]) -> None:
    source, name, way = ClassFolders(str(photo_folder)), "train/dark/3.jpg", "features"
    intact = (photo_folder / name).read_bytes()
    (photo_folder / name).write_bytes(intact[:100])
    index = source.train().names.index(name)
    for indices in (range(24), range(23, -1, -1), [index], range(24)):
        part = source.train().subset(np.array(indices))
        result = find_in(tmp_path, WAYS[way](part))
        assert list(result.remarks) == [list(indices).index(index)]
        with pytest.raises(UserError, match=r"^photo 'train/dark/3\.jpg' cannot be decoded: "):
            require_readable(part, result)
    assert computed == [24]
    (photo_folder / name).write_bytes(intact)
    mended = find_in(tmp_path, WAYS[way](source.train()))
    assert not require_readable(source.train(), mended).remarks
    assert computed == [24, 1]
    assert np.array_equal(mended.rows, find_in(tmp_path / "fresh", WAYS[way](source.train())).rows)


def test_interrupted_computation_keeps_whole_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = NumberedPhotos.read

    def interrupted(self: NumberedPhotos, index: int) -> Image.Image:
        if index == 140:
            raise KeyboardInterrupt
        return read(self, index)

    interrupted.__module__, interrupted.__qualname__ = read.__module__, read.__qualname__
    request = RowRequest(NumberedPhotos(150), SMALL)
    with monkeypatch.context() as patched:
        patched.setattr(NumberedPhotos, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            find_in(tmp_path, request)
    (table,) = (tmp_path / "features").iterdir()
    assert sorted(path.suffix for path in table.iterdir()) == [".json", ".safetensors", ".safetensors"]
    assert find_in(tmp_path, request).computed == 22


def die(self: Photos, index: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_end_of_a_decoding_process_is_reported_in_one_line(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PhotoFiles, "read", die)
    message = r"^num_workers: a process that decodes pictures stopped \(.*(killed|exited).*\); computed rows are kept"
    with pytest.raises(UserError, match=message) as caught:
        find_in(tmp_path, RowRequest(photos, SMALL), workers=1)
    assert "\n" not in str(caught.value)

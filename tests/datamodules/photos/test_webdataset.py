"""Photos in tar shards, compared with the standard library's reader of archives."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules import UnsplitClassFolders, WebDatasetShards
from headstart.datamodules.photos import file_indexes, tar_members, webdataset
from headstart.datamodules.photos.file_indexes import Arrays
from headstart.datamodules.photos.packed_photos import PackedPhotos
from headstart.datamodules.photos.tar_index import index_tar
from headstart.output.errors import UserError
from headstart.store import file_digests
from headstart.tests.material.shards import compress, png, reds, write_shard, write_tar

LONG = "a_folder_with_a_long_name/" * 6 + "picture"


def read_by_tarfile(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive if each.isreg()}  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_pictures_are_those_of_tarfile(tmp_path: Path, form: int) -> None:
    rng = np.random.default_rng(0)
    names = ["b", "n01/a", "ünïcode", LONG, "./dot/x.y"]
    members = [
        (f"{name}.{ending}", rng.bytes(size))
        for name, size in zip(names, (0, 1, 511, 512, 3 * 2**20), strict=True)
        for ending in ("txt", "JPG")
    ]
    path = write_tar(tmp_path / "a.tar", members, form)
    expected = {name: content for name, content in read_by_tarfile(path).items() if name.endswith("JPG")}
    photos = WebDatasetShards(str(path)).pictures()
    assert [*photos.names] == [*expected]
    assert [photos.content(index) for index in range(len(photos))] == [*expected.values()]
    assert [*photos.digests()] == [hashlib.sha256(content).hexdigest() for content in expected.values()]
    assert photos.labels.tolist() == [-1] * len(names)


def test_members_that_are_no_samples_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo("x.txt" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else "x.png")
            member.type, member.linkname = kind, "elsewhere.png"
            archive.addfile(member)
        for name in ("a.png", "._b.png", "folder/.c.png", "README"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
    assert [*WebDatasetShards(str(path)).pictures().names] == ["a.png"]


def test_labels_and_order(tmp_path: Path) -> None:
    for shard in range(3):
        write_shard(tmp_path / f"photos-{shard:02d}.tar", range(10 * shard, 10 * shard + 10))
    source = WebDatasetShards(str(tmp_path / "photos-{00..02}.tar"), validation_fraction=0.2)
    train, validation = source.train(), source.validation()
    assert isinstance(train, PackedPhotos)
    assert isinstance(validation, PackedPhotos)
    assert source.name == tmp_path.name
    assert train.classes == validation.classes == ("even", "odd")
    assert np.bincount(train.labels).tolist() == [12, 12]
    assert np.bincount(validation.labels).tolist() == [3, 3]
    assert sorted(reds(train) + reds(validation)) == list(range(30))
    for photos in (train, validation):
        assert photos.labels.tolist() == [red % 2 for red in reds(photos)]
        assert reds(photos) == sorted(reds(photos))

    own = WebDatasetShards([str(tmp_path / "photos-0[01].tar")], str(tmp_path / "photos-02.tar"))
    assert (len(own.train()), len(own.validation())) == (20, 10)
    with pytest.raises(UserError, match=r"^validation: .*none\*\.tar: no file matches it"):
        WebDatasetShards(str(tmp_path / "photos-00.tar"), str(tmp_path / "none*.tar")).validation()


def test_labels_in_json_and_one_of_several_pictures(tmp_path: Path) -> None:
    members = []
    for red, label in enumerate((3, 10, "7", 3)):
        content = json.dumps({"label": label, "text": "x"}).encode()
        members += [(f"{red}.left.png", png(red)), (f"{red}.right.png", png(100)), (f"{red}.json", content)]
    path = str(write_tar(tmp_path / "a.tar", members))
    photos = WebDatasetShards(path, label="label", image=".left.png").pictures()
    assert photos.classes == ("3", "7", "10")
    assert photos.labels.tolist() == [0, 2, 1, 0]
    assert reds(photos) == [0, 1, 2, 3]
    with pytest.raises(UserError, match=r"^train: the sample '0' .* \(\.left\.png, \.right\.png, \.json\) has several"):
        WebDatasetShards(path, label="label").train()
    with pytest.raises(UserError, match=r"^train: 4 of 4 photos have no label, first '0\.left\.png' .*with label=KEY"):
        WebDatasetShards(path, image="left.png").train()


def test_a_shard_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_shard(tmp_path / "a.tar", range(4))
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", -(10**12))
    opened: list[str] = []

    def index(location: str, **options: str | None) -> Arrays:
        opened.append(location)
        return index_tar(location, **options)

    monkeypatch.setattr(webdataset, "index_tar", index)

    def read() -> PackedPhotos:
        source = WebDatasetShards(str(path))
        source.prepare(tmp_path / "cache")
        return source.pictures()

    first = read()
    assert ([*read().digests()], opened) == ([*first.digests()], [str(path)])
    [kept] = (tmp_path / "cache" / "file_indexes").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert ([*read().digests()], len(opened)) == ([*first.digests()], 2)
    write_shard(path, range(5))
    assert (len(read()), len(opened)) == (5, 3)
    kept.unlink()
    (tmp_path / "cache" / "file_indexes").rmdir()
    (tmp_path / "cache" / "file_indexes").write_text("")
    assert len(read()) == 5


@pytest.mark.parametrize("ahead", [10**9, 10**18])
def test_shards_of_the_future_are_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    path, now, counts = write_shard(tmp_path / "a.tar", range(4)), time.time_ns(), []
    os.utime(path, ns=(now + ahead, now + ahead))
    reads: list[str] = []

    def index(location: str, **options: str | None) -> Arrays:
        reads.append(location)
        return index_tar(location, **options)

    monkeypatch.setattr(webdataset, "index_tar", index)
    # The clock of the process stands within the two seconds, goes on, and is set back.
    for seconds in (0, 1, 3, 4, 5, 0):
        monkeypatch.setattr(time, "time_ns", lambda later=seconds: now + later * 10**9)
        reads.clear()
        source = WebDatasetShards(str(path))
        source.prepare(tmp_path / "cache")
        assert len(source.pictures()) == 4
        counts.append(len(reads))
    assert counts == [1, 1, 1, 0, 0, 0]


def test_bytes_that_change_afterwards_are_never_decoded(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.tar", range(4))
    photos = WebDatasetShards(str(path)).pictures()
    write_shard(path, (9, 1, 2, 3))
    with pytest.raises(OSError, match=r"its bytes in .*a\.tar have changed") as caught:
        photos.read(0)
    assert caught.value.errno is not None
    path.unlink()
    webdataset._opened.cache_clear()
    with pytest.raises(FileNotFoundError):
        photos.read(1)


def test_parts_are_small(tmp_path: Path) -> None:
    for shard in range(5):
        write_shard(tmp_path / f"{shard}.tar", range(50 * shard, 50 * shard + 50))
    photos = WebDatasetShards(str(tmp_path / "{0..4}.tar")).pictures()
    part = photos.part(np.array([120, 3, 121]))
    come = pickle.loads(pickle.dumps(part))
    assert [file.location for file in come.files] == [str(tmp_path / "0.tar"), str(tmp_path / "2.tar")]
    assert (reds(come), [*come.names]) == ([120, 3, 121], ["000120.png", "000003.png", "000121.png"])
    assert [*come.digests()] == [photos.digest(index) for index in (120, 3, 121)]
    few, many = (len(pickle.dumps(photos.part(np.arange(count)))) for count in (50, 250))
    assert (many - few) / 200 < 150
    assert come.names[:2] == ["000120.png", "000003.png"]


def test_rows_are_those_of_the_same_bytes_in_files(tmp_path: Path) -> None:
    for red in range(4):
        folder = tmp_path / "files" / ("odd" if red % 2 else "even")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{red}.png").write_bytes(png(red))
    files = UnsplitClassFolders(str(tmp_path / "files")).train()
    photos = WebDatasetShards(str(write_shard(tmp_path / "a.tar", (0, 2, 1, 3)))).pictures()
    assert photos.decoding == files.decoding
    assert [*photos.digests()] == files.digests()


def test_shards_that_come_twice(tmp_path: Path) -> None:
    one = write_shard(tmp_path / "a.tar", range(3))
    other = write_shard(tmp_path / "b.tar", range(2, 5))
    (tmp_path / "link.tar").symlink_to(one)
    for again in (str(one), str(tmp_path / "link.tar")):
        with pytest.raises(UserError, match=r"^train: the shard .*a\.tar is listed twice; list it once"):
            WebDatasetShards([str(one), again]).train()
    with pytest.raises(UserError, match=r"^train: the key '000002' is used twice in the shards .*a\.tar and .*b\.tar;"):
        WebDatasetShards([str(one), str(other)]).train()


def test_keys_are_compared_and_not_only_their_digests(tmp_path: Path) -> None:
    photos = WebDatasetShards(str(write_shard(tmp_path / "a.tar", range(4)))).pictures()
    assert isinstance(photos, webdataset.ShardPhotos)
    webdataset._require_different_keys(photos, np.zeros(4, np.uint64))


def test_remote_shards(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    for shard in range(2):
        local = write_shard(tmp_path / f"{shard}.tar", range(10 * shard, 10 * shard + 10))
        files.pipe(f"/shards/photos-{shard}.tar", local.read_bytes())
    source = WebDatasetShards("memory://shards/photos-*.tar")
    photos = source.pictures()
    assert source.name == "shards"
    assert reds(photos) == list(range(20))
    files.pipe("/shards/photos-1.tar", files.cat("/shards/photos-1.tar")[:-20000])
    with pytest.raises(UserError, match=r"^train: the shard memory://.*photos-1\.tar is cut off"):
        source.train()
    files.rm("/shards", recursive=True)


def test_pictures_of_a_broken_file_are_lasting_faults(tmp_path: Path) -> None:
    photos = WebDatasetShards(str(write_tar(tmp_path / "a.tar", [("a.png", b"no picture"), ("b.png", b"")]))).pictures()
    for index in range(2):
        with pytest.raises(OSError, match=r"no picture of a known format|it has no bytes") as caught:
            photos.read(index)
        assert caught.value.errno is None


def test_no_torch_is_needed() -> None:
    code = "import headstart.datamodules.photos.given_pictures, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("piece", [1, 512, 1500, 4096])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_that_lie_in_several_pieces(
    tmp_path: Path, form: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar_members, "PIECE", piece)
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 3000, 40)
    members = []
    for index, size in enumerate(sizes):
        name = f"{LONG if index % 5 == 0 else 'ü'}-{index}"
        members += [(f"{name}.txt", rng.bytes(int(size))), (f"{name}.png", rng.bytes(int(sizes[-index])))]
    path = write_tar(tmp_path / "a.tar", members, form)
    photos = WebDatasetShards(str(path)).pictures()
    expected = {name: content for name, content in read_by_tarfile(path).items() if name.endswith("png")}
    assert [*photos.names] == [*expected]
    assert [photos.content(index) for index in range(len(photos))] == [*expected.values()]
    assert [*photos.digests()] == [hashlib.sha256(content).hexdigest() for content in expected.values()]

    content = path.read_bytes()
    path.write_bytes(content[: int(photos.columns["offsets"][20]) - 100])
    with pytest.raises(UserError, match=r"is cut off \(in a header\); 20 pictures before are intact"):
        WebDatasetShards(str(path)).pictures()


def test_sums_of_signed_bytes(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("\xff.png", b"abc")], tarfile.GNU_FORMAT)
    content = bytearray(path.read_bytes())
    content[148:156] = b" " * 8
    signed = sum(byte - 256 * (byte > 127) for byte in content[:512])
    content[148:156] = b"%06o\0 " % signed
    path.write_bytes(content)
    assert [*read_by_tarfile(path)] == [*WebDatasetShards(str(path)).pictures().names]
    content[148:156] = b"%06o\0 " % (signed + 1)
    path.write_bytes(content)
    with pytest.raises(UserError, match="is no tar archive"):
        WebDatasetShards(str(path)).pictures()


def test_shards_are_indexed_in_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_shard(tmp_path / f"{shard}.tar", range(10 * shard, 10 * shard + 10)) for shard in range(3)]
    alone = WebDatasetShards([*map(str, paths)]).train()
    monkeypatch.setattr(file_indexes, "WORTH_PROCESSES", 0)
    monkeypatch.setattr(file_indexes, "count_processors", lambda: 2)
    together = WebDatasetShards([*map(str, paths)]).train()
    assert together.fingerprint() == alone.fingerprint()
    compress(paths[1])
    with pytest.raises(UserError, match=r"^train: the shard .*1\.tar is compressed \(gzip\)"):
        WebDatasetShards([*map(str, paths)]).train()

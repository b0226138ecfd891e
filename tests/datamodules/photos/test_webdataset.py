"""Photos in tar shards, compared with the standard library's reader of archives."""

import gzip
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
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
from headstart.tests.material.shards import png, write_shard, write_tar

LONG = "a_folder_with_a_long_name/" * 6 + "picture"


def reds(photos: PackedPhotos) -> list[int]:
    return [photos.read(index).getpixel((0, 0))[0] for index in range(len(photos))]  # type: ignore[index]


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
    assert own.files() == [tmp_path / f"photos-{shard:02d}.tar" for shard in range(3)]
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


def cut(size: int) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:size])

    return apply


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:4200] = bytes(range(104))
    path.write_bytes(content)


def compress(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


# A sample takes a header of pax, its content and a header and content of each of two members: 4,096 bytes.
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (cut(4096 * 2 + 512 * 3 + 20), r"is cut off \(in a member\); 2 pictures before are intact; .*tar --sort=name"),
        (cut(4096 * 3), r"is cut off \(there is no end mark\); 3 pictures before are intact"),
        (cut(4096 * 2 + 100), r"is cut off \(in a header\); 2 pictures before are intact"),
        (cut(0), r"is cut off \(there is no end mark\); 0 pictures before are intact"),
        (damage, r"is damaged; 1 pictures before are intact; fetch or write it again"),
        (compress, r"is compressed \(gzip\), .*unpack it to a plain \.tar"),
        (lambda path: path.write_bytes(b"no archive" * 100), r"is no tar archive"),
        (lambda path: write_tar(path, []), r"holds no picture; leave it out"),
        (lambda path: write_tar(path, [("a.txt", b"")]), r"the sample 'a' of .* \(\.txt\) has no picture"),
        (lambda path: write_tar(path, [("a.png", b"")] * 2), r"the sample 'a' of .* has several pictures"),
        (
            lambda path: write_tar(path, [("a.png", b""), ("b.png", b""), ("a.png", b"")]),
            r"the key 'a' comes twice in the shard .*b\.tar; give every sample a key of its own",
        ),
        (lambda path: write_tar(path, [("a.png", b""), ("a.cls", b"\xff")]), r"the member 'a\.cls' .* is not text"),
        (lambda path: path.unlink(), r"the file .* cannot be read \(No such file or directory\)"),
    ],
)
def test_bad_shards(tmp_path: Path, change: Callable[[Path], None], expected: str) -> None:
    good, bad = write_shard(tmp_path / "a.tar", range(5)), write_shard(tmp_path / "b.tar", range(10, 15))
    change(bad)
    with pytest.raises(UserError) as caught:
        WebDatasetShards([str(good), str(bad)]).train()
    message = str(caught.value)
    assert re.search(expected, message), message
    assert message.startswith("train: the ")
    assert str(bad) in message
    assert "\n" not in message


def pack(root: Path, *options: str) -> str:
    """Pack a picture, links to it and files with holes by GNU's tar."""
    (root / "a.png").write_bytes(png(1))
    (root / "b.png").hardlink_to(root / "a.png")
    (root / "c.png").symlink_to("a.png")
    for name, parts in (("d.bin", 30), ("e.png", 30)):
        with (root / name).open("wb") as file:
            for part in range(parts):
                file.seek(200_000 * part)
                file.write(b"part")
    subprocess.run(["tar", "-C", str(root), "-cf", str(root / "a.tar"), *options], check=True)
    return str(root / "a.tar")


needs_gnu_tar = pytest.mark.skipif(
    shutil.which("tar") is None or b"GNU" not in subprocess.run(["tar", "--version"], capture_output=True).stdout,
    reason="there is no GNU tar",
)
SPARSE = ["--format=gnu", *(f"--format=pax --sparse-version={version}" for version in ("0.0", "0.1", "1.0"))]


@needs_gnu_tar
@pytest.mark.parametrize("form", ["--format=gnu", "--format=pax"])
def test_links_are_errors(tmp_path: Path, form: str) -> None:
    given = pack(tmp_path, form, "a.png", "b.png")
    with pytest.raises(UserError, match=r"^train: the member 'b\.png' .*a\.tar is a hard link, .*--hard-dereference$"):
        WebDatasetShards(given).train()
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, form, "a.png", "c.png"], check=True)
    with pytest.raises(UserError, match=r"^train: the member 'c\.png' .*a\.tar is a symbolic link, .*--dereference$"):
        WebDatasetShards(given).train()
    options = [form, "--dereference", "--hard-dereference", "a.png", "b.png", "c.png"]
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, *options], check=True)
    assert reds(WebDatasetShards(given).pictures()) == [1, 1, 1]


@needs_gnu_tar
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_pictures_are_errors(tmp_path: Path, form: str) -> None:
    given = pack(tmp_path, *form.split(), "--sparse", "d.bin", "a.png")
    assert reds(WebDatasetShards(given).pictures()) == [1], "other sparse files are passed over"
    options = [*form.split(), "--sparse", "a.png", "d.bin", "e.png"]
    subprocess.run(["tar", "-C", str(tmp_path), "-cf", given, *options], check=True)
    with pytest.raises(
        UserError, match=r"^train: the member '.*e\.png' .*a\.tar is a sparse file, .*without --sparse$"
    ):
        WebDatasetShards(given).train()


def test_data_behind_the_end_mark_are_an_error(tmp_path: Path) -> None:
    one, other = (write_shard(tmp_path / f"{red}.tar", [red]) for red in range(2))
    with one.open("ab") as file:
        file.write(bytes(2**21))
    assert reds(WebDatasetShards(str(one)).pictures()) == [0], "zeros only pad the archive"
    with one.open("ab") as file:
        file.write(other.read_bytes())
    with pytest.raises(UserError, match=r"^train: the shard .*0\.tar goes on behind its end mark, .*--ignore-zeros"):
        WebDatasetShards(str(one)).train()


@pytest.mark.parametrize(
    "record",
    [
        b"000 path=a\n",
        b"xxx path=a\n",
        b"-5 path=a\n",
        b" path=a\n",
        b"3 path=a\n",
        b"99 path=a\n",
        b"1" * 5000 + b" path=a",
        b"11 size=x1\n",
        b"12 size=-10\n",
        b"8 size=\n",
        b"9 size=\xb2\n",
    ],
)
def test_damaged_extended_headers(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, content in (
            ("a.png", tarfile.REGTYPE, b""),
            ("x", tarfile.XHDTYPE, record),
            ("b.png", tarfile.REGTYPE, b""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match=r"^train: the shard .*a\.tar is damaged; 1 pictures before are intact"):
        WebDatasetShards(str(path)).train()


def test_a_size_that_no_memory_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, headers in (("a.png", {}), ("b.png", {"size": "999999999999999999"})):
            member = tarfile.TarInfo(name)
            member.pax_headers = headers
            archive.addfile(member)
    with pytest.raises(
        UserError, match=r"^train: the shard .* is cut off \(in a member\); 1 pictures before are intact"
    ):
        WebDatasetShards(str(path)).train()


def test_bad_json(tmp_path: Path) -> None:
    for content, problem in (
        (b"[1]", "is not a JSON object"),
        (b'{"k": [1]}', "has no text or whole number as 'k'"),
        (b"[" * 100_000, "is not a JSON object"),
    ):
        path = write_tar(tmp_path / "a.tar", [("a.png", b""), ("a.json", content)])
        with pytest.raises(UserError, match=f"^train: the member 'a.json' of the shard .* {problem}"):
            WebDatasetShards(str(path), label="k").train()


def test_shards_that_come_twice(tmp_path: Path) -> None:
    one = write_shard(tmp_path / "a.tar", range(3))
    other = write_shard(tmp_path / "b.tar", range(2, 5))
    (tmp_path / "link.tar").symlink_to(one)
    for again in (str(one), str(tmp_path / "link.tar")):
        with pytest.raises(UserError, match=r"^train: the shard .*a\.tar is listed twice; list it once"):
            WebDatasetShards([str(one), again]).train()
    with pytest.raises(UserError, match=r"^train: the key '000002' comes twice in the shards .*a\.tar and .*b\.tar;"):
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
    assert (source.name, source.files()) == ("shards", None)
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

"""Photos at URLs are those of the same files on the disk, and give the same rows."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import ClassFolders, ClassSubset, CsvPhotos, UnsplitClassFolders
from headstart.datamodules.photos import folder_listing, locations, remote_errors
from headstart.datamodules.photos.given_pictures import read_pictures
from headstart.datamodules.photos.photo_source import Photos
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.store import file_digests
from headstart.tests.material.computed_rows import pixel_rows, stack
from headstart.tests.material.file_servers import FileServer, serve_files

fsspec = pytest.importorskip("fsspec")
ROOT = "memory://photos"


@pytest.fixture
def memory(photo_folder: Path) -> Iterator[Any]:
    """The folder of photos in memory, with hidden files and others."""
    (photo_folder / "train" / "dark" / "notes.txt").write_text("notes")
    (photo_folder / "train" / "dark" / ".hidden.jpg").write_text("no photo")
    (photo_folder / "train" / "stray.jpg").write_text("no photo")
    files = fsspec.filesystem("memory")
    files.put(str(photo_folder), "/photos", recursive=True)
    yield files
    files.rm("/photos", recursive=True)


@pytest.fixture
def server(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_errors, "WAITS", (0.0, 0.0, 0.0))
    with serve_files() as served:
        for path in photo_folder.rglob("*.jpg"):
            served.files[f"/{path.relative_to(photo_folder).as_posix()}"] = path.read_bytes()
        yield served


def require_same(remote: Photos, local: Photos) -> None:
    assert list(remote.names) == list(local.names)
    assert remote.labels.tolist() == local.labels.tolist()
    assert (remote.classes, remote.left_out) == (local.classes, local.left_out)
    assert remote.digests() == local.digests()
    assert remote.fingerprint() == local.fingerprint()
    assert all(
        np.array_equal(np.asarray(remote.read(index)), np.asarray(local.read(index))) for index in range(len(local))
    )


def test_class_folders(memory: Any, photo_folder: Path) -> None:
    remote, local = ClassFolders(f"{ROOT}/"), ClassFolders(str(photo_folder))
    assert remote.name == "photos"
    for splits in (remote.both(), (remote.train(), remote.validation())):
        for found, expected in zip(splits, local.both(), strict=True):
            require_same(found, expected)
    chosen = [ClassSubset(source, ["light", "dark"]).both() for source in (remote, local)]
    assert [part.digests() for part in chosen[0]] == [part.digests() for part in chosen[1]]


def test_unsplit_class_folders(memory: Any, photo_folder: Path) -> None:
    remote, local = (UnsplitClassFolders(root, 0.3, 1) for root in (f"{ROOT}/train", str(photo_folder / "train")))
    for found, expected in zip(remote.both(), local.both(), strict=True):
        require_same(found, expected)


def test_both_splits_are_listed_once(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, list_below = list[str](), locations.list_below

    def counted(folder: str) -> dict[str, str]:
        calls.append(folder)
        return list_below(folder)

    monkeypatch.setattr(folder_listing, "list_below", counted)
    ClassFolders(ROOT).both()
    assert calls == [ROOT]


def test_a_folder_of_pictures(memory: Any, photo_folder: Path) -> None:
    remote, local = read_pictures(f"{ROOT}/train"), read_pictures(str(photo_folder / "train"))
    assert [name.removeprefix(ROOT) for name in remote.names] == [
        name.removeprefix(str(photo_folder)) for name in local.names
    ]
    assert remote.digests() == local.digests()


@pytest.mark.parametrize("source", [ClassFolders, UnsplitClassFolders])
def test_a_url_without_files(source: type[Any], memory: Any) -> None:
    with pytest.raises(UserError, match=r"^root: there are no files below memory://photos/none; give another folder$"):
        source("memory://photos/none").train()
    with pytest.raises(UserError, match=r"^root: memory://photos/train/dark must hold"):
        source("memory://photos/train/dark").train()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_rows_are_those_of_local_files(workers: int, server: FileServer, photo_folder: Path, tmp_path: Path) -> None:
    local = ClassFolders(str(photo_folder)).train()
    lines = [
        f"{server.url}/{name},{local.classes[label]}" for name, label in zip(local.names, local.labels, strict=True)
    ]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *lines]))
    remote = CsvPhotos(str(tmp_path / "list.csv")).splits()[0]
    assert remote.digests(tmp_path / "cache") == local.digests()
    server.failures["/train/dark/3.jpg"] = [503, 0]
    found, expected = (stack(pixel_rows(each, Preprocessing(resize=8, crop=8), workers)) for each in (remote, local))
    np.testing.assert_array_equal(found, expected)


def test_a_remote_csv_file(server: FileServer, photo_folder: Path) -> None:
    names = sorted(path.name for path in (photo_folder / "train" / "dark").iterdir())
    text = f"path,label\ndark/{names[0]},dark\nlight/{names[0]},light\n{server.url}/train/dark/{names[1]},dark\n"
    server.files["/train/list.csv"] = text.encode()
    source = CsvPhotos(f"{server.url}/train/list.csv")
    photos = source.splits()[0]
    assert source.name == "list"
    files = [photo_folder / "train" / name for name in (f"dark/{names[0]}", f"light/{names[0]}", f"dark/{names[1]}")]
    assert photos.digests() == [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]

    server.files["/train/list.csv"] = f"path,label\ndark/{names[0]},dark\ndark/{names[0]},light\n".encode()
    with pytest.raises(UserError, match=r"line 3: .* once more, after line 2"):
        source.train()
    with pytest.raises(UserError, match=r"^file: .*/none.csv cannot be read \(there is no such file or folder\)"):
        CsvPhotos(f"{server.url}/none.csv").train()


def test_a_remote_photo_that_is_missing_is_named(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"path,label\n{server.url}/none.jpg,a\n{server.url}/none2.jpg,b\n")
    photos = CsvPhotos(str(tmp_path / "list.csv")).splits()[0]
    with pytest.raises(UserError, match=r"/none2?.jpg cannot be read \(there is no such file"):
        photos.digests()
    with pytest.raises(UserError, match=r"none.jpg' cannot be read at the moment \(there is no such file or folder\)"):
        stack(pixel_rows(photos, Preprocessing(resize=8, crop=8)))


def test_digests_of_remote_files_are_kept(server: FileServer, photo_folder: Path, tmp_path: Path) -> None:
    lines = [f"{server.url}/train/{folder}/{number}.jpg,{folder}" for folder in ("dark", "light") for number in (3, 4)]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *lines]))

    def read() -> int:
        server.requests.clear()
        digests = CsvPhotos(str(tmp_path / "list.csv")).splits()[0].digests(tmp_path / "cache")
        assert digests == [
            hashlib.sha256(server.files[line.partition(server.url)[2].split(",")[0]]).hexdigest() for line in lines
        ]
        return sum(count for request, count in server.requests.items() if request.startswith("GET"))

    assert [read(), read()] == [4, 0]
    server.files["/train/dark/3.jpg"] = server.files["/train/dark/4.jpg"]
    assert [read(), read()] == [1, 0]
    # Without an ETag nothing says whether a file is the same.
    server.has_tags = False
    assert [read(), read()] == [4, 4]


def test_listed_states_keep_digests(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", -(10**12))
    digests = ClassFolders(ROOT).train().digests(tmp_path)
    given = read_pictures(f"{ROOT}/train/dark").digests(tmp_path)
    monkeypatch.setattr(locations, "_info", lambda *args: pytest.fail("the listing tells the states"))
    monkeypatch.setattr(locations, "read_bytes", lambda *args: pytest.fail("the digests are known"))
    assert ClassFolders(ROOT).train().digests(tmp_path) == digests
    pictures = read_pictures(f"{ROOT}/train/dark")
    assert pictures.digests(tmp_path) == given
    assert pictures.file_sizes(np.arange(len(pictures))).all()

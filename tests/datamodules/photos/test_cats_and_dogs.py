"""Cats and dogs in both layouts, and from a downloaded archive."""

import os
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
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
    source = lay_out(tmp_path, *flat(30, 12), "train/._cat.1.jpg", "train/Thumbs.db", "test1/1.jpg")
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [20, 8]
    assert np.bincount(validation.labels).tolist() == [10, 4]
    assert sorted([*train.names, *validation.names]) == sorted(flat(30, 12))
    for photos in (train, validation):
        assert all(("dog." in name) == label for name, label in zip(photos.names, photos.labels, strict=True))
        assert photos.classes == ("cats", "dogs")


def test_flat_split_depends_on_seed_and_names_alone(tmp_path: Path) -> None:
    names = flat(30, 30)
    first = lay_out(tmp_path / "first", *names)
    second = lay_out(tmp_path / "second", *reversed(names))
    assert list(first.train().names) == list(second.train().names)
    assert list(first.validation().names) == list(second.validation().names)
    other = CatsAndDogs(str(tmp_path / "first"), split_seed=1)
    assert set(other.validation().names) != set(first.validation().names)


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


@pytest.mark.parametrize(("fraction", "held_out"), [(0.001, 2), (0.25, 4), (0.999, 14)])
def test_neither_part_of_a_flat_split_lacks_a_class(tmp_path: Path, fraction: float, held_out: int) -> None:
    source = lay_out(tmp_path, *flat(8, 8), validation_fraction=fraction)
    assert len(source.validation()) == held_out
    assert len(source.train()) == 16 - held_out


def test_flat_endings_in_any_case(tmp_path: Path) -> None:
    source = lay_out(tmp_path, "train/Cat.1.JPG", "train/cat.2.jpeg", "train/dog.1.png", "train/DOG.2.Png")
    assert sorted(source.train().labels.tolist() + source.validation().labels.tolist()) == [0, 0, 1, 1]


def test_missing_root_names_both_remedies(tmp_path: Path) -> None:
    message = refusal(CatsAndDogs(str(tmp_path / "absent")))
    assert "download=true" in message


def test_default_root_lies_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    assert CatsAndDogs().root == tmp_path / "datasets" / "cats_and_dogs_filtered"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["cats/cat.0.jpg"], "must hold train/"),
        (["a/train/cats/cat.0.jpg", "b/train/cats/cat.0.jpg"], "of which 2 do"),
        (["train/birds/bird.0.jpg"], "it holds neither"),
        ([*FOLDERS, "train/cat.0.jpg"], "it holds both"),
        (TRAIN, "either validation/ or val/"),
        ([*TRAIN[:2], *VALIDATION], "exactly the classes cats, dogs in a folder each; those with photos are cats"),
        ([*FOLDERS, "train/birds/bird.0.jpg"], "those with photos are birds, cats, dogs"),
        ([*TRAIN, VALIDATION[0], "validation/dogs/notes.txt"], "must hold photos"),
        (flat(9, 0), "class dogs needs two or more photos, to hold some out for validation; it has 0"),
        (flat(1, 9), "class cats needs two or more photos, to hold some out for validation; it has 1"),
        ([*flat(9, 9), "train/cat.0 copy.jpg"], "1 have another name (cat.0 copy.jpg)"),
    ],
)
def test_unusable_folders(tmp_path: Path, names: list[str], reason: str) -> None:
    assert reason in refusal(lay_out(tmp_path, *names))


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    published = tmp_path / "public.zip"
    with zipfile.ZipFile(published, "w") as file:
        for name in (*FOLDERS, "vectorize.py"):
            file.writestr(f"cats_and_dogs_filtered/{name}", "")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        address = f"http://127.0.0.1:{server.server_port}/public.zip"
        source = CatsAndDogs(download=True, url=address)
        source.prepare()
        server.shutdown()
    assert source.train().names == TRAIN
    source.prepare()
    with pytest.raises(UserError, match=r"^download: .*public\.zip cannot be fetched .*Connection refused"):
        CatsAndDogs(str(tmp_path / "elsewhere"), download=True, url=address).prepare()


def test_nothing_is_downloaded_unasked(tmp_path: Path) -> None:
    source = CatsAndDogs(str(tmp_path / "absent"), url=(tmp_path / "public.zip").as_uri())
    source.prepare()
    assert "there is no folder" in refusal(source)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the photos are not there; HEADSTART_SHARED names their folder")
def test_public_photos() -> None:
    source = CatsAndDogs(str(SHARED))
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [1000, 1000]
    assert np.bincount(validation.labels).tolist() == [500, 500]
    for index in (0, 999, 1000, 1999):
        assert train.read(index).mode == "RGB"
    assert not {Path(name).name for name in train.names} & {Path(name).name for name in validation.names}

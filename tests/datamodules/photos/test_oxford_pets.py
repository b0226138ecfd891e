"""Oxford-IIIT Pet in torchvision's layout."""

import hashlib
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from torchvision.datasets import OxfordIIITPet

from headstart.datamodules.photos.oxford_pets import OxfordPets
from headstart.output.errors import UserError

SPLITS = {
    "trainval": [("Abyssinian_100", 1, 1, 1), ("american_bulldog_1", 2, 2, 1), ("Bengal_2", 6, 1, 3)],
    "test": [("american_bulldog_9", 2, 2, 1), ("Abyssinian_7", 1, 1, 1)],
}


def lay_out(folder: Path) -> None:
    (folder / "images").mkdir(parents=True)
    (folder / "annotations" / "trimaps").mkdir(parents=True)
    for split, photos in SPLITS.items():
        lines = [" ".join(map(str, photo)) for photo in photos]
        (folder / "annotations" / f"{split}.txt").write_text("\n".join(lines) + "\n")
        for number, photo in enumerate(photos):
            Image.new("RGB", (6, 4), (0, 0, 80 * number)).save(folder / "images" / f"{photo[0]}.jpg")


def refusal(source: OxfordPets) -> str:
    with pytest.raises(UserError) as caught:
        source.train()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("root: ")
    assert "download=true" in message
    return message


def test_both_splits(tmp_path: Path) -> None:
    lay_out(tmp_path / "oxford-iiit-pet")
    source = OxfordPets(str(tmp_path))
    train, validation = source.train(), source.validation()
    assert train.classes == validation.classes == ("Cat", "Dog")
    assert list(train.names) == [f"images/{photo[0]}.jpg" for photo in SPLITS["trainval"]]
    assert train.labels.tolist() == [0, 1, 0]
    assert validation.labels.tolist() == [1, 0]
    assert train.read(2).size == (6, 4)


def test_listing_agrees_with_torchvision(tmp_path: Path) -> None:
    lay_out(tmp_path / "oxford-iiit-pet")
    dataset = OxfordIIITPet(tmp_path, split="trainval", target_types="binary-category")
    train = OxfordPets(str(tmp_path)).train()
    for index, (photo, label) in enumerate(dataset[i] for i in range(len(dataset))):
        assert label == train.labels[index]
        assert photo.tobytes() == train.read(index).tobytes()


def test_listing_decodes_nothing(tmp_path: Path) -> None:
    lay_out(tmp_path / "oxford-iiit-pet")
    for photo in (tmp_path / "oxford-iiit-pet" / "images").iterdir():
        photo.write_bytes(b"")
    assert len(OxfordPets(str(tmp_path)).train()) == 3


def test_default_root_lies_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    lay_out(tmp_path / "datasets" / "oxford-iiit-pet")
    assert len(OxfordPets().validation()) == 2


def test_missing(tmp_path: Path) -> None:
    source = OxfordPets(str(tmp_path))
    source.prepare()
    assert "there is no folder" in refusal(source)


@pytest.mark.parametrize("part", ["images", "annotations", "annotations/trainval.txt", "images/Bengal_2.jpg"])
def test_incomplete(tmp_path: Path, part: str) -> None:
    folder = tmp_path / "oxford-iiit-pet"
    lay_out(folder)
    (folder / part).rename(tmp_path / "elsewhere")
    assert "is incomplete" in refusal(OxfordPets(str(tmp_path)))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve torchvision's two archives from a folder."""
    folder = tmp_path / "server"
    lay_out(folder / "content")
    checksums = {}
    for part in ("images", "annotations"):
        archive = folder / f"{part}.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            file.add(folder / "content" / part, part)
        checksums[archive.name] = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        resources = [(f"{url}/{name}", checksum) for name, checksum in checksums.items()]
        monkeypatch.setattr(OxfordIIITPet, "_RESOURCES", resources)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def test_download_by_torchvision(tmp_path: Path, published: Path) -> None:
    source = OxfordPets(str(tmp_path / "root"), download=True)
    source.prepare()
    assert len(source.train()) == 3
    (published / "images.tar.gz").unlink()
    source.prepare()
    assert len(source.validation()) == 2


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_failed_download_leaves_nothing(tmp_path: Path, published: Path, damage: str) -> None:
    annotations = published / "annotations.tar.gz"
    if damage == "missing":
        annotations.unlink()
    else:
        annotations.write_bytes(b"something else")
    source = OxfordPets(str(tmp_path / "root"), download=True)
    with pytest.raises(UserError, match=r"^download: torchvision cannot .*root"):
        source.prepare()
    assert [path.name for path in (tmp_path / "root").iterdir()] in ([], [".oxford-iiit-pet.lock"])

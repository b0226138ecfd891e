"""Photos in files: what identifies them, and what is said of their classes."""

import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource, require_classes
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.tests.material.photo_folders import refusal

CLASSES = ("cats", "dogs")


@pytest.fixture
def three(tmp_path: Path) -> Path:
    for name, shade in (("a.png", 0), ("b.png", 100), ("c.png", 200)):
        Image.new("RGB", (4, 4), (shade, shade, shade)).save(tmp_path / name)
    return tmp_path


def test_digests_are_of_the_bytes_alone(three: Path) -> None:
    photos = PhotoFiles(three, ["a.png", "b.png", "c.png"], [0, 1, 1], CLASSES)
    expected = [hashlib.sha256((three / name).read_bytes()).hexdigest() for name in photos.names]
    assert photos.digests() == expected
    assert photos.subset(np.array([2, 0])).digests() == [expected[2], expected[0]]
    (three / "b.png").rename(three / "d.png")
    assert PhotoFiles(three, ["d.png"], [0], CLASSES).digests() == [expected[1]]
    assert Stimuli(["s"], [three / "d.png"]).digests() == [expected[1]]


def test_fingerprints_are_of_classes_names_labels_and_contents(three: Path) -> None:
    contents = [hashlib.sha256((three / name).read_bytes()).digest() for name in ("b.png", "a.png")]
    parts = b"cats\0dogs" + b"\0b.png\x000\0" + contents[0] + b"\0a.png\x001\0" + contents[1]
    photos = PhotoFiles(three, ["b.png", "a.png"], [0, 1], CLASSES)
    assert photos.fingerprint() == hashlib.sha256(parts).hexdigest()


def test_a_source_without_a_name_is_called_by_its_class() -> None:
    class Nameless(PhotoSource):
        def train(self) -> Photos:
            raise NotImplementedError

        def validation(self) -> Photos:
            raise NotImplementedError

    class Named(Nameless):
        name = "pets"

    assert (Nameless().name, Named().name) == ("Nameless", "pets")


def test_classes_that_cannot_be_distinguished() -> None:
    for labels, classes, reason in (([0, 0], ("cats",), "1 class (cats)"), ([1, 1], CLASSES, "no training photo of")):
        photos = PhotoFiles(Path(), ["a.png", "b.png"], labels, classes)
        assert reason in refusal(partial(require_classes, photos, "training"))


def test_names_of_classes_that_look_alike_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    alike = {
        "case": ("Katze", "KATZE", "'Katze' and 'KATZE'"),
        "Unicode form": ("caf\u00e9", "cafe\u0301", r"'caf\xe9' and 'cafe\u0301'"),
        "space": ("hot dog", "hot\u00a0dog", r"'hot dog' and 'hot\xa0dog'"),
        "sharp s": ("Stra\u00dfe", "STRASSE", r"'Stra\xdfe' and 'STRASSE'"),
    }
    for kind, (one, other, listed) in alike.items():
        require_classes(PhotoFiles(Path(), ["a", "b", "c"], [0, 1, 2], (one, "zebra", other)), "training")
        assert f"WARNING: classes {listed} differ" in " ".join(capsys.readouterr().out.split()), kind
    require_classes(PhotoFiles(Path(), ["a", "b"], [0, 1], ("hotdog", "hot dog")), "training")
    assert not capsys.readouterr().out

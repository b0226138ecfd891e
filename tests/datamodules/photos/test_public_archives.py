"""Cats and dogs, and ants and bees, in the layouts of their public archives."""

from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules import AntsAndBees, CatsAndDogs
from headstart.tests.material.photo_folders import lay_out, refusal
from headstart.tests.material.root import require_shared

TRAIN = ["train/cats/cat.2.jpg", "train/cats/cat.10.jpg", "train/dogs/dog.0.jpg"]
VALIDATION = ["validation/cats/cat.3.jpg", "validation/dogs/dog.4.jpg"]


@pytest.mark.parametrize("top", ["", "cats_and_dogs_filtered"])
def test_layout(tmp_path: Path, top: str) -> None:
    lay_out(tmp_path / top, *TRAIN, *VALIDATION, "vectorize.py", "train/cats/none.svg")
    train, validation = CatsAndDogs(str(tmp_path)).both()
    assert train.classes == validation.classes == ("cats", "dogs")
    assert (train.names, train.labels.tolist()) == (TRAIN, [0, 0, 1])
    assert (validation.names, validation.labels.tolist()) == (VALIDATION, [0, 1])
    assert set(train.left_out.values()) == {".svg"}


def test_unusable_folders(tmp_path: Path) -> None:
    mistakes = {
        "it holds a/": ["a/train/cats/cat.0.jpg"],
        "those with photos are birds, cats, dogs": [*TRAIN, *VALIDATION, "train/birds/bird.0.jpg"],
    }
    for number, (reason, names) in enumerate(mistakes.items()):
        source = CatsAndDogs(lay_out(tmp_path / str(number), *names))
        assert reason in refusal(source.train, source.validation, start=f"root: {tmp_path / str(number)}")


def test_public_photos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "hymenoptera_data").symlink_to(require_shared("data/ants_and_bees"))
    for source, sizes in (
        (AntsAndBees(), [[124, 121], [70, 83]]),
        (CatsAndDogs(str(require_shared("data/cats_and_dogs"))), [[1000, 1000], [500, 500]]),
    ):
        assert [np.bincount(photos.labels).tolist() for photos in source.both()] == sizes
        assert source.train().read(0).mode == "RGB"

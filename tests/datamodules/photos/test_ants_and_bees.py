"""Ants and bees in the public archive's layout."""

from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.ants_and_bees import AntsAndBees
from headstart.tests.material.photo_folders import lay_out
from headstart.tests.material.root import shared_data

TRAIN = ["train/ants/0.jpg", "train/bees/1.jpg", "train/bees/2.jpg"]
VALIDATION = ["val/ants/3.jpg", "val/bees/4.jpg"]


def test_archive_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    lay_out(tmp_path / "datasets" / "hymenoptera_data" / "set", *TRAIN, *VALIDATION, "train/ants/imageNotFound.svg")
    train, validation = AntsAndBees().both()
    assert train.classes == ("ants", "bees")
    assert (train.names, train.labels.tolist()) == (TRAIN, [0, 1, 1])
    assert (validation.names, validation.labels.tolist()) == (VALIDATION, [0, 1])
    assert set(train.left_out.values()) == {".svg"}


def test_public_photos() -> None:
    source = AntsAndBees(str(shared_data("ants_and_bees")))
    train, validation = source.train(), source.validation()
    assert (len(train), len(validation)) == (245, 153)
    assert np.bincount(validation.labels).min() > 60
    assert train.read(0).mode == "RGB"

"""The embedded default as a data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import DrawnObjects, DrawnPets
from headstart.datamodules.drawings import canvas
from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from headstart.datamodules.drawings.drawn_pets import draw_pet
from headstart.datamodules.photos import drawn_photos


def test_drawings_and_digests_are_those_of_the_generator() -> None:
    train = DrawnPets(train_size=4, drawing_seed=3).train()
    for i in range(4):
        assert train.read(i).tobytes() == draw_pet(i % 2, i, seed=3).tobytes()
    source, other = DrawnPets(train_size=6, validation_size=4), DrawnPets(train_size=6, drawing_seed=1)
    digests = source.train().digests()
    objects = DrawnObjects(train_size=2, drawing_seed=1).train().digests()
    assert len({*digests, *source.validation().digests(), *other.train().digests(), *objects}) == 18
    assert DrawnPets(train_size=9).train().digests()[:6] == digests


def test_digests_follow_the_code_that_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = DrawnPets(train_size=2).train().digests()
    (tmp_path / "canvas.py").write_text("another")
    monkeypatch.setattr(canvas, "__file__", str(tmp_path / "canvas.py"))
    drawn_photos.digest_code.cache_clear()
    try:
        assert set(before).isdisjoint(DrawnPets(train_size=2).train().digests())
    finally:
        drawn_photos.digest_code.cache_clear()


def test_harder_drawings_are_other_ones_by_the_same_names() -> None:
    usual = DrawnPets(train_size=8).train()
    for part in ("occlusion", "noise", "pose"):
        harder: dict[str, Any] = {part: 6.0}
        hard = DrawnPets(train_size=8, **harder).train()
        assert usual.names == hard.names
        assert set(usual.digests()).isdisjoint(hard.digests())
        assert hard.read(3).tobytes() == draw_pet(1, 3, difficulty=canvas.Difficulty(**{part: 6.0})).tobytes()
        assert sum(usual.read(i).tobytes() != hard.read(i).tobytes() for i in range(8)) >= 6
    assert DrawnPets().name == DrawnPets(occlusion=1.0).name == "drawn_pets"
    assert DrawnPets(occlusion=6, pose=0.5).name == "drawn_pets, occlusion 6, pose 0.5"


def test_splits_are_balanced_and_apart() -> None:
    for source, classes in (
        (DrawnPets(train_size=10, validation_size=6), ("cats", "dogs")),
        (DrawnObjects(train_size=120, validation_size=60, drawing_seed=4), SOURCE_CLASSES),
    ):
        train, validation = source.both()
        assert train.classes == validation.classes == classes
        assert np.bincount(train.labels).tolist() == [source.train_size // len(classes)] * len(classes)
        assert np.bincount(validation.labels).tolist() == [source.validation_size // len(classes)] * len(classes)
        assert not set(train.names) & set(validation.names)
        assert len(set(train.digests()) | set(validation.digests())) == len(train) + len(validation)
    # The last source's classes come in turn.
    for position, (label, index) in {0: (0, 0), 59: (59, 0), 60: (0, 1), 119: (59, 1)}.items():
        assert train.read(position).tobytes() == draw_object(label, index, 4).tobytes()

"""The embedded default as a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datamodules import DrawnPets
from datamodules.drawings import canvas, drawn_photos
from datamodules.drawings.drawn_pets import draw_pet


def test_splits_are_balanced_and_apart() -> None:
    source = DrawnPets(train_size=10, validation_size=6)
    train, validation = source.train(), source.validation()
    assert np.bincount(train.labels).tolist() == [5, 5]
    assert np.bincount(validation.labels).tolist() == [3, 3]
    assert not set(train.names) & set(validation.names)
    pictures = {split.read(i).tobytes() for split in (train, validation) for i in range(len(split))}
    assert len(pictures) == 16


def test_drawings_are_those_of_the_generator() -> None:
    train = DrawnPets(train_size=4, drawing_seed=3).train()
    for i in range(4):
        assert train.read(i).tobytes() == draw_pet(i % 2, i, seed=3).tobytes()


def test_another_size_leaves_the_others_alone() -> None:
    small, large = DrawnPets(train_size=4), DrawnPets(train_size=8)
    assert small.train().names == large.train().names[:4]
    assert small.validation().fingerprint() == large.validation().fingerprint()


@pytest.mark.parametrize("change", [{"train_size": 5}, {"drawing_seed": 1}])
def test_fingerprint_changes_with_what_is_drawn(change: dict[str, int]) -> None:
    assert (
        DrawnPets(**{"train_size": 4, **change}).train().fingerprint() != DrawnPets(train_size=4).train().fingerprint()
    )


def test_digests_tell_drawings_apart_and_meet_again() -> None:
    source = DrawnPets(train_size=6, validation_size=4)
    digests = source.train().digests()
    assert (
        len({*digests, *source.validation().digests(), *DrawnPets(train_size=6, drawing_seed=1).train().digests()})
        == 16
    )
    assert DrawnPets(train_size=9).train().digests()[:6] == digests


def test_digests_follow_the_code_that_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = DrawnPets(train_size=2).train().digests()
    (tmp_path / "canvas.py").write_text("another")
    monkeypatch.setattr(canvas, "__file__", str(tmp_path / "canvas.py"))
    drawn_photos._code.cache_clear()
    try:
        assert set(before).isdisjoint(DrawnPets(train_size=2).train().digests())
    finally:
        drawn_photos._code.cache_clear()

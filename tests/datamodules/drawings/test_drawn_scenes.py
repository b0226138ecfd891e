"""Drawn scenes: label maps against what is drawn, and what decides a scene."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules import DrawnScenes
from headstart.datamodules.drawings.canvas import Warp
from headstart.datamodules.drawings.drawn_objects import PAINTERS
from headstart.datamodules.drawings.drawn_scenes import LabelledCanvas
from headstart.output.errors import UserError

GROUND = (200, 200, 200)
SIDE = 96


def arrays(canvas: LabelledCanvas) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    return np.asarray(canvas.image), np.asarray(canvas.labels.getchannel("R"))


@pytest.fixture
def canvas() -> LabelledCanvas:
    image, labels = Image.new("RGB", (SIDE, SIDE), GROUND), Image.new("RGB", (SIDE, SIDE))
    pose = np.array([[30.0, 5.0, 40.0], [-5.0, 30.0, 50.0]])
    warp = Warp(np.full((2, 2), 0.05), np.zeros(2), 2.0)
    return LabelledCanvas(image, pose, warp, (1, 2, 3), GROUND, labels, 7)


@pytest.mark.parametrize("subject", ["fish", "pine", "sailboat", "star"])
def test_pixels_are_labelled_where_they_are_painted(subject: str, canvas: LabelledCanvas) -> None:
    PAINTERS[subject](canvas, np.random.default_rng(0))
    picture, labels = arrays(canvas)
    painted = (picture != GROUND).any(2)
    assert 0.02 < painted.mean() < 0.9
    np.testing.assert_array_equal(labels, np.where(painted, 7, 0))


def test_later_subjects_cover_earlier_ones(canvas: LabelledCanvas) -> None:
    square = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    canvas.polygon(square, (10, 0, 0))
    before = arrays(canvas)[1].copy()
    replace(canvas, label=3).within(0.5, 0.0, 0.5).polygon(square, (0, 10, 0))
    replace(canvas, label=0, outline=None).within(-0.5, 0.0, 0.2).polygon(square, (0, 0, 10))
    picture, labels = arrays(canvas)
    assert set(np.unique(labels)) == {0, 3, 7}
    # The colours alone decide: clutter is background, and an outline belongs to its object.
    assert (labels[(picture == (0, 10, 0)).all(2)] == 3).all()
    assert (labels[(picture == (0, 0, 10)).all(2)] == 0).all()
    assert (labels[(picture == (10, 0, 0)).all(2)] == 7).all()
    assert ((before == 7) & (labels == 0)).any()


def test_scenes_and_their_maps() -> None:
    source = DrawnScenes(["fish", "car", "star"], train_size=30, validation_size=4, size=48, noise=0, occlusion=0)
    train = source.train()
    assert train.maps is not None
    assert train.classes == ("background", "fish", "car", "star")
    assert (len(train), len(train.maps), len(source.validation())) == (30, 30, 4)
    results = [np.asarray(train.maps.read(index)) for index in range(len(train))]
    assert {each.shape for each in results} == {(48, 48, 3)}
    assert {train.read(index).size for index in range(3)} == {(48, 48)}
    # One scene has one subject at least, and all have all of them.
    assert all(each.any() for each in results)
    assert all((each == each[..., :1]).all() for each in results)
    assert set(np.unique(results)) == {0, 1, 2, 3}
    assert 0.02 < np.mean([each > 0 for each in results]) < 0.6
    assert not set(train.digests()) & set(source.validation().digests())
    assert not set(train.digests()) & set(train.maps.digests())


def test_another_setting_is_another_data_set() -> None:
    changes: list[dict[str, Any]] = [{}, {"subjects": ["car", "fish"]}, {"most": 1}, {"pose": 3.0}, {"size": 32}]
    changes += [{"drawing_seed": 1}, {"train_size": 5}]
    scenes = [DrawnScenes(**{"subjects": ["fish", "car"], "train_size": 4, **change}).train() for change in changes]
    assert len({each.fingerprint() for each in scenes}) == len(changes)
    assert DrawnScenes(["fish", "car"], train_size=9, name="other").train().digests()[:4] == scenes[0].digests()
    for subjects in ([], ["fish", "unicorn"], ["fish", "fish"]):
        with pytest.raises(UserError, match=r"^subjects: "):
            DrawnScenes(subjects).train()

"""Behaviour of the embedded default's target task."""

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from headstart.datamodules.drawings.drawn_pets import draw_pet

PER_CLASS = 300


def _pixels(label: int, index: int, seed: int = 0, size: int = 64) -> NDArray[np.uint8]:
    return np.asarray(draw_pet(label, index, seed, size))


def _held_out_accuracy(features: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    fitted = np.arange(len(labels)) % 3 > 0
    model = LogisticRegression(C=0.1, max_iter=500).fit(features[fitted], labels[fitted])
    return float(model.score(features[~fitted], labels[~fitted]))


def test_label_index_and_seed_each_select_another_picture() -> None:
    pictures = {_pixels(label, index, seed).tobytes() for label in (0, 1) for index in range(20) for seed in (0, 1)}
    assert len(pictures) == 80
    assert draw_pet(1, 0, size=96).size == (96, 96)


def test_mean_colours_and_thumbnails_do_not_tell_the_class() -> None:
    drawings = [_pixels(label, index, seed=5) for label in (0, 1) for index in range(PER_CLASS)]
    pictures, labels = np.stack(drawings) / 255.0, np.repeat([0, 1], PER_CLASS)
    assert pictures.reshape(2 * PER_CLASS, -1).std(axis=1).min() > 0.02
    assert _held_out_accuracy(pictures.mean(axis=(1, 2)), labels) < 0.65
    thumbnails = pictures.reshape(-1, 8, 8, 8, 8, 3).mean(axis=(2, 4)).reshape(len(labels), -1)
    assert _held_out_accuracy(thumbnails, labels) < 0.68

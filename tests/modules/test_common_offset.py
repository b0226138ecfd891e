"""A large common offset of features changes no prediction."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.modules.arithmetic import LARGE_OFFSET, common_offset, seen_rows

pytest.importorskip("sklearn", reason="the extra sklearn is not installed")

from sklearn.neighbors import NearestCentroid

from headstart.estimators import CLASSIFIERS, HeadstartClassifier

WIDTH, CLASSES = 64, 3


def draw(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw features and classes that are far apart."""
    labels = np.arange(count) % CLASSES
    centres = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    return np.random.default_rng(seed).normal(size=(count, WIDTH)) + 2 * centres[labels], labels


def test_every_method_predicts_as_without_the_offset() -> None:
    (samples, labels), (points, expected) = draw(120, 1), draw(300, 2)
    column = np.eye(WIDTH)[3]
    for offset in (1e3, 1e4, 1e5, 1e5 * column):
        x, z = (np.asarray(values + offset, np.float32) for values in (samples, points))
        assert NearestCentroid().fit(x, labels).score(z, expected) == 1
        for method in sorted(CLASSIFIERS.keys() - {"scikit_learn_classifier"}):
            assert HeadstartClassifier(method, batch_size=10).fit(x, labels).score(z, expected) > 0.9, (method, offset)


def test_what_is_an_offset() -> None:
    rows = torch.from_numpy(draw(120, 1)[0]).float()
    direction = torch.ones(WIDTH) / WIDTH**0.5 * (rows - rows.mean(0)).square().sum(1).mean().sqrt()
    centred = rows - rows.mean(0)
    assert common_offset(rows) is None
    assert common_offset(centred + 0.99 * LARGE_OFFSET * direction) is None
    offset = common_offset(centred + 1.01 * LARGE_OFFSET * direction)
    assert offset is not None
    torch.testing.assert_close(offset, 1.01 * LARGE_OFFSET * direction)
    # Equal features, a single one and such as are not finite stay as they are.
    for other in (torch.ones(4, 3), rows[:1] + 1e6, rows / 0):
        assert common_offset(other) is None
    assert [len(range(*seen_rows(count).indices(count))) for count in (1, 1024, 1025, 10**6)] == [1, 1024, 513, 1024]

"""Procrustes similarity against SciPy; invariances and mistakes are tested with the catalogue."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

from headstart.metrics.similarity.procrustes import pairwise_procrustes
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]


@pytest.mark.parametrize("shape", [(40, 5, 3), (12, 30, 4), (12, 30, 40), (15, 1, 9), (10, 10, 10)])
def test_equal_to_scipy(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    widest = max(shape[1:])
    # SciPy needs as many columns; columns of zeros change nothing.
    _, _, disparity = procrustes(*(np.pad(each, ((0, 0), (0, widest - each.shape[1]))) for each in (x, y)))
    matrix, debiased = pairwise_procrustes([x, y])
    assert debiased is None
    assert 1 - matrix[0, 1] ** 2 == pytest.approx(disparity, abs=1e-12)


def test_the_residual_is_the_distance() -> None:
    x, y = ((each - each.mean(0)) / np.linalg.norm(each - each.mean(0)) for each in embeddings(30, 7, 7))
    rotation, _ = orthogonal_procrustes(x, y)
    left_over = np.linalg.norm(x @ rotation - y) ** 2
    assert pairwise_procrustes([x, y])[0][0, 1] == pytest.approx(1 - left_over / 2, abs=1e-12)


@pytest.mark.parametrize("width", [3, 50])
def test_orthogonal_columns_have_a_closed_form(width: int) -> None:
    # Two stimuli groups that differ along one axis each, unrelated: X^T Y = 0.
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 5, dtype=float)
    x, y = np.zeros((20, width)), np.zeros((20, width))
    x[:, 0], y[:, 1] = signs[:, 0], signs[:, 1]
    both = np.zeros((20, width))
    both[:, :2] = signs
    matrix = pairwise_procrustes([x, y, both])[0]
    assert matrix[0, 1] == pytest.approx(0, abs=1e-12)
    assert matrix[0, 2] == pytest.approx(np.sqrt(0.5))

"""The matrix of a similarity that is computed one pair after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Compared = TypeVar("Compared")


def matrix_of_pairs(
    compared: Sequence[Compared], similarity: Callable[[Compared, Compared], float]
) -> NDArray[np.float64]:
    """Compute the similarity of every pair of m representations.

    Args:
        compared: The representations, m of them.
        similarity: Returns the similarity of two: at most 1, up to rounding, and 1 where both are the same.

    Returns:
        Symmetric matrix `[m, m]` with ones on its diagonal, at most 1.
    """
    matrix = np.eye(len(compared))
    for i, j in combinations(range(len(compared)), 2):
        matrix[i, j] = matrix[j, i] = min(similarity(compared[i], compared[j]), 1.0)
    return matrix

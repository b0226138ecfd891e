"""The first three moments of the inner product of two centred Gram matrices when the samples of one are permuted.

With K and L centred Gram matrices `[n, n]` and P a uniformly random permutation matrix, the statistic is
`t = <K, P L P'>_F`. Its mean is `tr K tr L / (n - 1)`. All higher moments follow from sums of one matrix at a time, so
that those of all pairs of m matrices cost m^2 operations once these sums are known.

Source: Kazi-Aoual, Hitier, Sabatier and Lebreton, "Refined approximations to permutation tests for multivariate
inference", Computational Statistics & Data Analysis 20, 1995, pages 643-656. Here the matrices are first made
traceless, `A = K - tr K / (n - 1) H` with H the centring matrix, which moves t by its mean and nothing else: then the
moments are central at once, lose no digits to the mean, and most of the published terms vanish.

They are derived by partitions. `E t^k` is a sum over 2k indices, and the value depends only on which of them are
equal: a partition of 2k indices into b blocks contributes the sum over different indices of products of entries of A,
times that of B, divided by `n (n - 1) ... (n - b + 1)`. Sums over different indices are linear combinations of the
sums over all indices; of these only the ones of connected graphs whose vertices all have two ends of edges or more are
not 0, since the rows of A sum to 0 and so does its diagonal. Each row of the tables below is a number of partitions,
their blocks, and the linear combination.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.cubic_sums import CubicSums
from headstart.metrics.similarity.gram_products import DEGENERATE, GramProducts

Matrix = NDArray[np.float64]
Partitions = Sequence[tuple[int, int, tuple[int, ...]]]

# Combinations of the sums of a_ii^2 and a_ij^2.
SECOND: Partitions = ((1, 1, (1, 0)), (2, 2, (1, -1)), (5, 2, (1, 0)), (4, 3, (2, -1)), (2, 3, (2, 0)), (1, 4, (6, -2)))
# Combinations of the sums of a_ii^3, a_ij^3, a_ii a_ij^2 and a_ii a_ij a_jj, and tr A^3.
THIRD: Partitions = (
    (1, 1, (1, 0, 0, 0, 0)),
    (4, 2, (1, -1, 0, 0, 0)),
    (12, 2, (1, 0, -1, 0, 0)),
    (6, 2, (1, 0, 0, -1, 0)),
    (9, 2, (1, 0, 0, 0, 0)),
    (24, 3, (2, -1, -1, 0, 0)),
    (8, 3, (2, 0, -3, 0, 1)),
    (6, 3, (2, 0, -2, 0, 0)),
    (24, 3, (2, 0, -1, -1, 0)),
    (12, 3, (2, 0, -1, 0, 0)),
    (12, 3, (2, 0, 0, -1, 0)),
    (4, 3, (2, 0, 0, 0, 0)),
    (6, 4, (6, -2, -4, 0, 0)),
    (8, 4, (6, -2, -3, 0, 0)),
    (24, 4, (6, -1, -5, -1, 1)),
    (12, 4, (6, 0, -3, -2, 0)),
    (12, 4, (6, 0, -2, -2, 0)),
    (3, 4, (6, 0, 0, -2, 0)),
    (12, 5, (24, -4, -16, -4, 2)),
    (3, 5, (24, 0, -8, -8, 0)),
    (1, 6, (120, -16, -72, -24, 8)),
)


def mean_and_variance(products: GramProducts) -> tuple[Matrix, Matrix]:
    """Compute mean and variance of the biased CKA of every pair over all permutations, `[m, m]` each.

    The variance is 0 where it consists of rounding errors: two samples, or rows that are equidistant.
    """
    n, squares = products.n, products.grams.diagonal()
    traces = products.traces / np.sqrt(squares)
    remaining = 1 - traces**2 / (n - 1)
    own = products.diagonals.diagonal() / squares - traces**2 / n
    constant = remaining <= DEGENERATE
    variance = np.maximum(_expectation(n, SECOND, np.stack([own, remaining], axis=1)), 0)
    variance[constant] = variance[:, constant] = 0
    return np.outer(traces, traces) / (n - 1), variance


def skewness(products: GramProducts, sums: Sequence[CubicSums]) -> Matrix:
    """Compute the third central moment over the 1.5th power of the variance of every pair, `[m, m]`.

    Args:
        products: Inner products of m centred Gram matrices.
        sums: The sums of each of them on which third moments depend, m.

    Returns:
        The skewness, symmetric; 0 where the variance is.
    """
    scales, *each = np.array(sums).T
    norms = scales * np.sqrt(products.grams.diagonal())
    _, variance = mean_and_variance(products)
    third = _expectation(products.n, THIRD, np.stack(each, axis=1) / norms[:, None] ** 3)
    standardised: Matrix = np.divide(third, variance**1.5, out=np.zeros_like(third), where=variance > 0)
    return standardised


def _expectation(n: int, partitions: Partitions, sums: Matrix) -> Matrix:
    """Add up a table for all pairs: sums of one matrix `[m, s]` give `[m, m]`."""
    total = np.zeros((len(sums), len(sums)))
    for count, blocks, weights in partitions:
        # n indices cannot take more than n different values.
        if blocks <= n:
            combined = sums @ np.array(weights, dtype=np.float64)
            arrangements = float(np.prod(np.arange(n, n - blocks, -1, dtype=np.float64)))
            total += count / arrangements * np.outer(combined, combined)
    return total

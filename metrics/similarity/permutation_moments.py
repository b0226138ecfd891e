"""The first three moments of the inner product of two centred Gram matrices when the samples of one are permuted.

With K and L centred Gram matrices `[n, n]` and P a uniformly random permutation matrix, the statistic is `t = <K, P L
P'>_F`. Its mean is `tr K tr L / (n - 1)`. All higher moments follow from sums of one matrix at a time. Once these sums
are known, the moments of all pairs of m matrices cost m^2 operations.

Source: Kazi-Aoual, Hitier, Sabatier and Lebreton, "Refined approximations to permutation tests for multivariate
inference", Computational Statistics & Data Analysis 20, 1995, pages 643-656. Here the matrices are first made
traceless, `A = K - tr K / (n - 1) H` with H the centring matrix. This only subtracts the mean of t from it. The moments
are then central, lose no digits to the mean, and most of the published terms vanish.

The moments are derived by partitions. `E t^k` is a sum over 2k indices, and a term depends only on which of them are
equal. A partition of 2k indices into b blocks contributes the sum over b distinct indices of products of entries of A,
times that of B, divided by `n (n - 1) ... (n - b + 1)`. Sums over distinct indices are linear combinations of the sums
over all indices. The rows of A sum to 0, and so does its diagonal. Among the sums over all indices, only those of
connected graphs whose vertices all have degree two or more are therefore not 0. Each row of `partitions.csv` has a
number of partitions, the number of their blocks, and the weights of the linear combination.

With `K = X X'`, sums over the diagonal are computed from all rows. Other sums would take up to n^3 operations. For
more than 384 rows, they are estimated from 384 sampled without replacement, which costs less than K itself. The sample
determines only the shape of K; all rows determine its size. The mean of a sum over distinct indices is estimated by
that over the sample, times the 1.5th power of a ratio: the mean of k_ij^2 over all i != j, divided by that over the
sample (a ratio estimate; Cochran, "Sampling Techniques", 3rd edition, 1977, chapter 6).
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding
from headstart.metrics.similarity.gram_products import DEGENERATE, GramProducts

# Columns: the moment k, the numbers of partitions and of their blocks, and the weights of the sums in the header.
PARTITIONS = np.loadtxt(Path(__file__).with_name("partitions.csv"), delimiter=",", skiprows=1)
# Number of rows above which sums are estimated, from a sample of as many rows.
LIMIT = 384
SEED = 0


def mean_and_variance(products: GramProducts) -> tuple[Floats, Floats]:
    """Compute mean and variance of the biased CKA of every pair over all permutations, `[m, m]` each.

    The variance is set to 0 where it would consist of rounding errors: for two samples, or equidistant rows.
    """
    n, squares = products.n, products.grams.diagonal()
    traces = products.traces / np.sqrt(squares)
    remaining = 1 - traces**2 / (n - 1)
    self_terms = products.diagonals.diagonal() / squares - traces**2 / n
    constant = remaining <= DEGENERATE
    variance = np.maximum(_expectation(n, 2, np.stack([self_terms, remaining], axis=1)), 0)
    variance[constant] = variance[:, constant] = 0
    return np.outer(traces, traces) / (n - 1), variance


def skewness(embeddings: Sequence[CentredEmbedding], products: GramProducts) -> tuple[Floats, Floats]:
    """Compute the third central moment over the 1.5th power of the variance of every pair, `[m, m]`.

    The lengths of rows determine the diagonals of A and B, which contribute the sum of a_ii b_p(i)p(i) to t. Its third
    moment is `n / ((n - 1) (n - 2))` times the product of the sums of their cubes. Even with few leading directions, it
    is near 0 unless single rows lie far from all others.

    Args:
        embeddings: The embeddings, m of them.
        products: Inner products of their centred Gram matrices.

    Returns:
        The skewness, and the contribution of the row lengths alone; symmetric, 0 where the variance is 0.
    """
    squares = products.grams.diagonal()
    scales, *terms = np.array([_cubic_sums(x, square) for x, square in zip(embeddings, squares, strict=True)]).T
    norms = scales * np.sqrt(squares)
    _, variance = mean_and_variance(products)
    n, cubes = products.n, np.stack(terms, axis=1) / norms[:, None] ** 3
    third = _expectation(n, 3, cubes)
    of_lengths = n / ((n - 1) * max(n - 2, 1)) * np.outer(cubes[:, 0], cubes[:, 0])
    whole, part = (
        np.divide(moment, variance**1.5, out=np.zeros_like(third), where=variance > 0) for moment in (third, of_lengths)
    )
    return whole, part


def _expectation(n: int, moment: int, sums: Floats) -> Floats:
    """Compute a moment of all pairs, `[m, m]`, by its rows of the table from sums of single matrices, `[m, s]`."""
    total = np.zeros((len(sums), len(sums)))
    for _, count, blocks, *weights in PARTITIONS[PARTITIONS[:, 0] == moment]:
        # n indices cannot take more than n different values.
        if blocks <= n:
            combined = sums @ np.array(weights[: sums.shape[1]])
            arrangements = float(np.prod(np.arange(n, n - blocks, -1, dtype=np.float64)))
            total += count / arrangements * np.outer(combined, combined)
    return total


def _cubic_sums(x: CentredEmbedding, squares: float) -> tuple[float, ...]:
    """Compute sums of `A = s (K - tr K / (n - 1) H)`, a scaled Gram matrix made traceless by the centring matrix H.

    They are exact up to 384 rows.

    Args:
        x: The embedding, `[n, d]`.
        squares: Sum of the squares of its Gram matrix K.

    Returns:
        The factor s, a power of 4 that keeps cubes from being 0 or infinite; the sums of a_ii^3, a_ij^3, a_ii a_ij^2
        and a_ii a_ij a_jj; and tr A^3.
    """
    n = x.n
    diagonal = x.squared_lengths()
    scale = 4.0 ** -math.floor(math.log2(diagonal.max()) / 2)
    diagonal, squares = diagonal * scale, squares * scale**2
    trace, diag_squares, diag_cubes = (float((diagonal**power).sum()) for power in (1, 2, 3))
    between = squares - diag_squares
    entries, rows, bilinear, triangles = _off_diagonal_sums(x, scale, between)

    # A has the diagonal of K minus `lost`, and its other entries plus `gained`.
    shift = trace / (n - 1)
    lost, gained = shift * (1 - 1 / n), shift / n
    moved = diagonal - lost
    moved_cubes = float((moved**3).sum())
    return (
        scale,
        moved_cubes,
        moved_cubes + entries + 3 * gained * between - 3 * gained**2 * trace + n * (n - 1) * gained**3,
        rows + diag_cubes - 2 * shift * diag_squares - lost * squares + 3 * shift * lost * trace - n * shift * lost**2,
        bilinear + diag_cubes - shift * float((moved**2).sum()),
        triangles + 3 * rows + diag_cubes - 3 * shift * squares + 3 * shift**2 * trace - (n - 1) * shift**3,
    )


def _off_diagonal_sums(x: CentredEmbedding, scale: float, between: float) -> tuple[float, float, float, float]:
    """Sum k_ij^3, k_ii k_ij^2 and k_ii k_ij k_jj over all i != j, and k_ij k_jp k_pi over all different i, j and p.

    Args:
        x: The embedding.
        scale: The factor of its Gram matrix.
        between: Sum of k_ij^2 over all i != j.
    """
    n, sample = x.n, _sample_rows(x, scale)
    gram = sample @ sample.T
    s, diagonal = len(gram), gram.diagonal().copy()
    gram.reshape(-1)[:: s + 1] = 0
    squared = gram * gram
    row_sums = squared.sum(1)

    # Factors from sums over the sample to sums over all rows.
    pairs, triples = float(n) * (n - 1) / (s * (s - 1)), 1.0
    if n > s:
        triples = pairs * (n - 2) / (s - 2)
    sampled = float(row_sums.sum())
    size = (between / (pairs * sampled)) ** 1.5 if sampled > 0 and between > 0 else 1.0

    entries, rows, bilinear = (
        float(value)
        for value in (squared.reshape(-1) @ gram.reshape(-1), diagonal @ row_sums, diagonal @ (gram @ diagonal))
    )
    if sample.shape[1] < s:
        # The trace of the cube equals that of the smaller product of features, minus the terms with equal indices.
        triangles = _trace_of_cube(sample.T @ sample) - 3 * rows - float((diagonal**3).sum())
    else:
        triangles = _trace_of_cube(gram)
    return size * pairs * entries, size * pairs * rows, size * pairs * bilinear, size * triples * triangles


def _trace_of_cube(symmetric: Floats) -> float:
    return float((symmetric @ symmetric.T).reshape(-1) @ symmetric.reshape(-1))


def _sample_rows(x: CentredEmbedding, scale: float) -> Floats:
    """Return at most 384 sampled rows, multiplied by the square root of the factor of their Gram matrix."""
    sampled = np.sort(np.random.default_rng(SEED).choice(x.n, LIMIT, replace=False)) if x.n > LIMIT else slice(None)
    rows = x.centred(sampled)
    rows *= math.sqrt(scale)
    return rows

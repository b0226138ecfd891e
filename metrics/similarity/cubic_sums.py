"""Sums over three entries of a centred Gram matrix, on which the third moment of its permutations depends.

With `K = X X'` `[n, n]`, sums over the diagonal are computed from all rows. The others would take up to n^3 operations;
for more than 384 rows they are estimated from 384 sampled without replacement, which costs less than K itself. Only the
shape of K comes from the sample, and its size from all rows: a sum over different indices is its mean over the sample,
times the 1.5th power of the ratio of the mean of k_ij^2 over all i != j to that over the sample (a ratio estimate;
Cochran, "Sampling Techniques", 3rd edition, 1977, chapter 6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headstart.metrics.arrays import Array, namespace, to_host
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Workspace

ROWS = 384
SEED = 0


class CubicSums(NamedTuple):
    """Sums of `A = s (K - tr K / (n - 1) H)`, a scaled Gram matrix that was made traceless by the centring matrix H.

    Attributes:
        scale: The factor s, a power of 4 that keeps cubes from being 0 or infinite.
        diagonal: Sum of a_ii^3.
        entries: Sum of a_ij^3.
        rows: Sum of a_ii a_ij^2.
        bilinear: Sum of a_ii a_ij a_jj.
        traced: tr A^3.
    """

    scale: float
    diagonal: float
    entries: float
    rows: float
    bilinear: float
    traced: float


def cubic_sums(x: CentredEmbedding, squares: float) -> CubicSums:
    """Compute the sums of one embedding.

    Args:
        x: The embedding, `[n, d]`.
        squares: Sum of the squares of its Gram matrix K.

    Returns:
        The sums, exact up to 384 rows.
    """
    n = x.n
    diagonal = to_host(x.squared_lengths())
    scale = 4.0 ** -math.floor(math.log2(diagonal.max()) / 2)
    diagonal, squares = diagonal * scale, squares * scale**2
    trace, own_squares, own_cubes = (float((diagonal**power).sum()) for power in (1, 2, 3))
    between = squares - own_squares
    entries, rows, bilinear, triangles = _between_rows(x, scale, between)

    # From K to A: the diagonal loses `lost`, and the other entries gain `gained`.
    shift = trace / (n - 1)
    lost, gained = shift * (1 - 1 / n), shift / n
    moved = diagonal - lost
    moved_cubes = float((moved**3).sum())
    return CubicSums(
        scale,
        moved_cubes,
        moved_cubes + entries + 3 * gained * between - 3 * gained**2 * trace + n * (n - 1) * gained**3,
        rows + own_cubes - 2 * shift * own_squares - lost * squares + 3 * shift * lost * trace - n * shift * lost**2,
        bilinear + own_cubes - shift * float((moved**2).sum()),
        triangles + 3 * rows + own_cubes - 3 * shift * squares + 3 * shift**2 * trace - (n - 1) * shift**3,
    )


def _between_rows(x: CentredEmbedding, scale: float, between: float) -> tuple[float, float, float, float]:
    """Sum k_ij^3, k_ii k_ij^2 and k_ii k_ij k_jj over all i != j, and k_ij k_jp k_pi over all different i, j and p.

    Args:
        x: The embedding.
        scale: The factor of its Gram matrix.
        between: Sum of k_ij^2 over all i != j.
    """
    n, sample = x.n, _sample_rows(x, scale)
    gram = sample @ sample.T
    s, xp = len(gram), namespace(gram)
    diagonal = xp.array(gram.diagonal(), copy=True) if xp is np else gram.diagonal().clone()
    gram.reshape(-1)[:: s + 1] = 0
    squared = gram * gram
    lines = squared.sum(1)

    pairs, triples = float(n) * (n - 1) / (s * (s - 1)), 1.0
    if n > s:
        triples = pairs * (n - 2) / (s - 2)
    sampled = float(lines.sum())
    size = (between / (pairs * sampled)) ** 1.5 if sampled > 0 and between > 0 else 1.0

    entries, rows, bilinear = (
        float(value)
        for value in (squared.reshape(-1) @ gram.reshape(-1), diagonal @ lines, diagonal @ (gram @ diagonal))
    )
    if sample.shape[1] < s:
        # The trace of the cube equals that of the smaller product of features, less terms of equal rows.
        triangles = _trace_of_cube(sample.T @ sample) - 3 * rows - float((diagonal**3).sum())
    else:
        triangles = _trace_of_cube(gram)
    return size * pairs * entries, size * pairs * rows, size * pairs * bilinear, size * triples * triangles


def _trace_of_cube(symmetric: Array) -> float:
    return float((symmetric @ symmetric.T).reshape(-1) @ symmetric.reshape(-1))


def _sample_rows(x: CentredEmbedding, scale: float) -> Array:
    """Sample rows, or take all where they are few, and scale them by the root of their Gram matrix's factor."""
    chosen = np.sort(np.random.default_rng(SEED).choice(x.n, ROWS, replace=False)) if x.n > ROWS else slice(None)
    rows = x.centred(chosen, Workspace())
    rows *= math.sqrt(scale)
    return rows

"""Sums over three entries of a centred Gram matrix, on which the third moment of its permutations depends.

With `K = X X'` `[n, n]`, those of the diagonal alone are computed from all rows. The others would take up to n^3
operations; where there are more than 384 rows they are estimated from 384 drawn without replacement, which costs less
than K itself. Only the shape of K is taken from the drawn rows, and its size from all: a sum over different indices is
its mean over the drawn ones, times the 1.5th power of what the mean of k_ij^2 over all i != j is to that over the drawn
ones (a ratio estimate; Cochran, "Sampling Techniques", 3rd edition, 1977, chapter 6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, namespace, to_host
from headstart.metrics.similarity.centred_embedding import CHUNK_VALUES, CentredEmbedding, Workspace

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
    n = len(x.values)
    diagonal = _squared_lengths(x)
    scale = 4.0 ** -math.floor(math.log2(diagonal.max()) / 2)
    diagonal, squares = diagonal * scale, squares * scale**2
    trace, own_squares, own_cubes = (float((diagonal**power).sum()) for power in (1, 2, 3))
    between = squares - own_squares
    entries, rows, bilinear, triangles = _between_rows(x, scale, between)
    # From K to A: the diagonal loses `lost`, and what lies beside it gains `gained`.
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


def _squared_lengths(x: CentredEmbedding) -> NDArray[np.float64]:
    """Compute the diagonal of the Gram matrix, `[n]`."""
    workspace, step = Workspace(), max(1, CHUNK_VALUES // x.width)
    blocks = (x.centred(slice(start, start + step), workspace) for start in range(0, len(x.values), step))
    return np.concatenate([to_host((block * block).sum(1)) for block in blocks])


def _between_rows(x: CentredEmbedding, scale: float, between: float) -> tuple[float, float, float, float]:
    """Sum k_ij^3, k_ii k_ij^2 and k_ii k_ij k_jj over all i != j, and k_ij k_jp k_pi over all different i, j and p.

    Args:
        x: The embedding.
        scale: The factor of its Gram matrix.
        between: Sum of k_ij^2 over all i != j.
    """
    n, drawn_rows = len(x.values), _drawn_rows(x, scale)
    gram = drawn_rows @ drawn_rows.T
    s, xp = len(gram), namespace(gram)
    diagonal = xp.array(gram.diagonal(), copy=True) if xp is np else gram.diagonal().clone()
    gram.reshape(-1)[:: s + 1] = 0
    squared = gram * gram
    lines = squared.sum(1)
    pairs, triples = float(n) * (n - 1) / (s * (s - 1)), 1.0
    if n > s:
        triples = pairs * (n - 2) / (s - 2)
    drawn = float(lines.sum())
    size = (between / (pairs * drawn)) ** 1.5 if drawn > 0 and between > 0 else 1.0
    entries, rows, bilinear = (
        float(value)
        for value in (squared.reshape(-1) @ gram.reshape(-1), diagonal @ lines, diagonal @ (gram @ diagonal))
    )
    if drawn_rows.shape[1] < s:
        # The trace of the cube is that of the smaller product of features, less what is not between different rows.
        triangles = _trace_of_cube(drawn_rows.T @ drawn_rows) - 3 * rows - float((diagonal**3).sum())
    else:
        triangles = _trace_of_cube(gram)
    return size * pairs * entries, size * pairs * rows, size * pairs * bilinear, size * triples * triangles


def _trace_of_cube(symmetric: Array) -> float:
    return float((symmetric @ symmetric.T).reshape(-1) @ symmetric.reshape(-1))


def _drawn_rows(x: CentredEmbedding, scale: float) -> Array:
    """Draw rows, or give all where they are few, and scale them by the root of their Gram matrix's factor."""
    n = len(x.values)
    chosen = np.sort(np.random.default_rng(SEED).choice(n, ROWS, replace=False)) if n > ROWS else slice(None)
    rows = x.centred(chosen, Workspace())
    rows *= math.sqrt(scale)
    return rows

"""Procrustes similarity: the overlap of two embeddings after the best rotation and scaling.

With X and Y column-centred and scaled to Frobenius norm 1, and |.|_* the sum of singular values,

    s(X, Y) = max over rotations Q of <X Q, Y>_F = |X^T Y|_*,

1 where a rotation makes them equal. It is the cosine of the angular shape distance (Williams, Kunz, Kornblith and
Linderman, "Generalized Shape Metrics on Neural Representations", NeurIPS 2021). The squared Procrustes distance is `2 -
2 s`, and the disparity of `scipy.spatial.procrustes` is `1 - s^2`.
"""

from collections.abc import Iterable

import numpy as np

from headstart.metrics.arrays import Array, Floats, is_tensor, namespace
from headstart.metrics.similarity.centred_embedding import (
    CentredEmbedding,
    Embedding,
    Workspace,
    matrix_of_pairs,
    precision,
    read_embeddings,
)


def unit_norm(x: CentredEmbedding) -> tuple[Array, float]:
    """Centre an embedding and scale it to Frobenius norm 1.

    Returns:
        In float64 `[n, d]`; and the largest singular value that rounding alone causes. With the precision e of the
        original values, an error of `e max|X|` in each causes singular values of about `e max|X| (sqrt(n) + sqrt(d))`.

    Raises:
        ValueError: It contains NaN or infinity.
    """
    values = x.centred(slice(None), Workspace())
    largest = float(abs(values).max())
    # First by the largest value, so that squares neither vanish nor exceed float64.
    values /= largest
    norm = float((values * values).sum()) ** 0.5
    values /= norm
    if not np.isfinite(float(values.sum())):
        raise ValueError(f"{x.name}: contains NaN or infinity")
    given = x.values[:]
    highest = max(abs(float(given.max())), abs(float(given.min())))
    n, d = values.shape
    return values, precision(x.values) * highest / largest / norm * float(np.sqrt(n) + np.sqrt(d))


def narrow(x: CentredEmbedding) -> tuple[Array, float]:
    """Return the result of `unit_norm`, rotated into at most n columns, `[n, min(n, d)]`.

    With `X^T = Q R`, the transposed triangle `R^T` has the Gram matrix of X.
    """
    values, rounding = unit_norm(x)
    if len(values) >= x.width:
        return values, rounding
    triangle = namespace(values).linalg.qr(values.T, mode="r")
    return (triangle[1] if is_tensor(values) else triangle).T, rounding


def pairwise_procrustes(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the Procrustes similarity of every pair of m embeddings.

    Every embedding is rotated once into at most n columns. A pair takes the singular values of a matrix of at most n x
    n numbers. Its time grows with the cube of the smaller of n and d. Memory besides the embeddings: 8 m n min(n, d)
    bytes, and 16 n d for one embedding in float64.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each. Tensors stay on their
            accelerator.

    Returns:
        Symmetric `[m, m]` from 0 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`.
    """
    narrowed = [narrow(x)[0] for x in read_embeddings(embeddings)]
    return matrix_of_pairs(narrowed, _nuclear_norm), None


def _nuclear_norm(x: Array, y: Array) -> float:
    return float(namespace(x).linalg.svdvals(x.T @ y).sum())

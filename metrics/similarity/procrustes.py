"""Procrustes similarity: the overlap of two embeddings after the best rotation, reflection and scaling.

With X and Y column-centred and scaled to Frobenius norm 1, and |.|_* the sum of singular values,

    s(X, Y) = max over rotations and reflections Q of <X Q, Y>_F = |X^T Y|_*,

which is 1 where some Q makes them equal. It is the cosine of the angular shape distance (Williams, Kunz, Kornblith and
Linderman, "Generalized Shape Metrics on Neural Representations", NeurIPS 2021). The squared Procrustes distance is `2 -
2 s`, and the disparity of `scipy.spatial.procrustes` is `1 - s^2`.
"""

from collections.abc import Iterable

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import Embedding, matrix_of_pairs, read_embeddings


def pairwise_procrustes(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the Procrustes similarity of every pair of m embeddings.

    Every embedding is rotated once into at most n columns. For each pair, singular values of a matrix of at most
    n x n numbers are computed, in time that grows with the cube of the smaller of n and d. Memory besides the
    embeddings: 8 m n min(n, d) bytes, and 16 n d for one embedding in float64.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each.

    Returns:
        Symmetric `[m, m]` from 0 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`.
    """
    narrowed = [x.narrow()[0] for x in read_embeddings(embeddings)]
    return matrix_of_pairs(narrowed, _nuclear_norm), None


def _nuclear_norm(x: Floats, y: Floats) -> float:
    return float(np.linalg.svdvals(x.T @ y).sum())

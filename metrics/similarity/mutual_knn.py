"""Mutual k-nearest neighbours: the share of a stimulus's neighbours that two embeddings have in common.

Every stimulus has in every embedding a set of its k nearest other stimuli by the cosine between rows. The similarity of
two embeddings is the mean over stimuli of the part of these k that is in both sets. Source: Huh, Cheung, Wang and
Isola, "The Platonic Representation Hypothesis", ICML 2024, with k = 10. Unrelated embeddings reach k / (n - 1) on
average. Ties between equally near neighbours are broken arbitrarily.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, check_integer
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.centred_embedding import Embedding, UnitRows, matrix_of_pairs, read_unit_rows

NEIGHBOURS = 10
# Cosines this near to 1 or -1 mean that rows lie on one line.
LOST = 1e-12


def pairwise_mutual_knn(embeddings: Iterable[Embedding], k: int = NEIGHBOURS) -> tuple[Floats, None]:
    """Compute the part of the k nearest neighbours that each pair of m embeddings has in common.

    Neighbours are sought once per embedding, and pairs compare only the indices of neighbours. Memory besides the
    embeddings, in bytes: 8 m n k, n k^2 for a pair, 8 n d for one embedding in float64, and twice 256 MiB of cosines.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each, n above k.
        k: Neighbours of each stimulus.

    Returns:
        Symmetric `[m, m]` from 0 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`; or k is less than 1; or an embedding, named as
            `embeddings[3]`, has no k neighbours. The reasons are too few stimuli, a row of 0, or rows that all lie on
            one line through the origin, as with a single column.
    """
    check_integer("k", k, 1)
    read = read_unit_rows(embeddings, "mutual kNN", correlated=False)
    n = read[0].n
    if n <= k:
        raise ValueError(
            f"{read[0].name}: mutual kNN is undefined for {n} stimuli, each of which needs {k} others; "
            f"give {k + 1} stimuli or more"
        )
    neighbours = [_nearest(x, k) for x in read]
    return matrix_of_pairs(neighbours, _shared_part), None


def _nearest(x: UnitRows, k: int) -> NDArray[np.int64]:
    """Return the indices of the k rows with the highest cosine to each row, except itself, `[n, k]`."""
    n = x.n
    rows, step = x.centred(), max(1, cka.BLOCK_BYTES // (8 * n))
    neighbours, lowest = [], 1.0
    for start in range(0, n, step):
        cosines = rows[start : start + step] @ rows.T
        lowest = min(lowest, float(abs(cosines).min()))
        # In each row of the block, the cosine of the row with itself is one further to the right.
        cosines.reshape(-1)[start :: n + 1] = -2
        neighbours.append(np.argpartition(cosines, n - k, 1)[:, n - k :])
    if lowest > 1 - LOST:
        raise ValueError(f"{x.name}: mutual kNN is undefined where all rows lie on one line through the origin")
    return np.concatenate(neighbours)


def _shared_part(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    return float((x[:, :, None] == y[:, None, :]).sum()) / x.size

"""Mutual k-nearest neighbours: which part of a stimulus's neighbours do two embeddings agree on?

Every stimulus has in every embedding a set of its k nearest other stimuli by the cosine between rows. The similarity of
two embeddings is the mean over stimuli of the part of these k that both sets hold. Source: Huh, Cheung, Wang and Isola,
"The Platonic Representation Hypothesis", ICML 2024, with k = 10. Embeddings that have
nothing to do with each other reach k / (n - 1) on average. Of neighbours that are equally near, any are taken.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import check_integer, is_tensor, to_host
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.centred_embedding import Embedding, Workspace
from headstart.metrics.similarity.every_pair import matrix_of_pairs
from headstart.metrics.similarity.unit_rows import UnitRows, read_unit_rows

NEIGHBOURS = 10
# Cosines that are this near to 1 or -1 are of rows on one line.
LOST = 1e-12


def pairwise_mutual_knn(embeddings: Iterable[Embedding], k: int = NEIGHBOURS) -> tuple[NDArray[np.float64], None]:
    """Compute the part of the k nearest neighbours that each pair of m embeddings has in common.

    Neighbours are sought once per embedding, and pairs compare the places of neighbours alone. Memory besides the
    embeddings: 8 m n k bytes, n k^2 for a pair, 8 n d for one embedding in float64, and twice 256 MiB of cosines.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each, n above k. Tensors on an
            accelerator are computed with there.
        k: Neighbours of each stimulus.

    Returns:
        Symmetric `[m, m]` from 0 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`; or k is less than 1; or, naming the embedding as
            `embeddings[3]`, it has no k neighbours: there are too few stimuli, a row is 0, or all rows lie on one
            line through the origin, as with a single column.
    """
    check_integer("k", k, 1)
    read = read_unit_rows(embeddings, "mutual kNN", correlated=False)
    n = len(read[0].values)
    if n <= k:
        raise ValueError(
            f"{read[0].name}: mutual kNN is undefined for {n} stimuli, each of which needs {k} others; "
            f"give {k + 1} stimuli or more"
        )
    neighbours = [_nearest(x, k) for x in read]
    return matrix_of_pairs(neighbours, _shared_part), None


def _nearest(x: UnitRows, k: int) -> NDArray[np.int64]:
    """Find the places of the k rows with the highest cosine to each row but itself, `[n, k]`."""
    n = len(x.values)
    rows, step = x.centred(slice(None), Workspace()), max(1, cka.BLOCK_BYTES // (8 * n))
    found, lowest = [], 1.0
    for start in range(0, n, step):
        cosines = rows[start : start + step] @ rows.T
        lowest = min(lowest, float(abs(cosines).min()))
        # A row's own cosine stands, counted along the block, one further to the right in each row.
        cosines.reshape(-1)[start :: n + 1] = -2
        highest = cosines.topk(k, 1).indices if is_tensor(cosines) else np.argpartition(cosines, n - k, 1)[:, n - k :]
        found.append(to_host(highest))
    if lowest > 1 - LOST:
        raise ValueError(f"{x.name}: mutual kNN is undefined where all rows lie on one line through the origin")
    return np.concatenate(found)


def _shared_part(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    return float((x[:, :, None] == y[:, None, :]).sum()) / x.size

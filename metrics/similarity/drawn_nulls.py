"""The null of linear CKA by drawn permutations, for embeddings with outliers.

A few rows may lie far from all others, each alone or side by side. CKA under permutations then depends on where these
rows go. It is large where those of both embeddings meet, and small otherwise. No gamma distribution has that form.
Single rows are found by the share of the row lengths in the skewness
(`headstart.metrics.similarity.permutation_moments`). Groups are found by a skewness that leading directions of normal
rows do not reach.

The p value and the quantile count the given order as one of the permutations. Source: Phipson and Smyth, "Permutation
p-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9, 2010, equation 2.
"""

from collections.abc import Sequence

import numpy as np

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.centred_embedding import CentredEmbedding
from headstart.metrics.similarity.permutation_moments import SEED

PERMUTATIONS = 999
# The most entries of all Gram matrices, and of all values: 1,000 stimuli of 20 models, and 141 models.
MOST_ENTRIES = 20_000_000
# Entries of a Gram matrix that are compared at a time, which fit into the cache.
CHUNK = 2**11
# CKA that differs by less is the same but for rounding.
TIE = 1e-9


def drawn_tails(embeddings: Sequence[CentredEmbedding], cka: Floats, level: float) -> tuple[Floats, Floats] | None:
    """Compute p values and quantiles of m embeddings among drawn permutations, the same for all pairs.

    A permutation takes n^2 / 2 entries of the Gram matrices and m^2 products of each.

    Args:
        embeddings: The embeddings, `[n, d_i]` each.
        cka: Their biased CKA, `[m, m]`.
        level: The quantile of the null.

    Returns:
        `(p, quantile)`, symmetric `[m, m]`; None where all Gram matrices, or all values, together are too large.
    """
    n, m = embeddings[0].n, len(embeddings)
    if max(n * n, PERMUTATIONS * m) * m > MOST_ENTRIES:
        return None
    orders = np.tile(np.arange(n), (1 + PERMUTATIONS, 1))
    orders[1:] = np.random.default_rng(SEED).permuted(orders[1:], axis=1)
    values = permuted_cka(embeddings, orders)
    tails = (values > cka - TIE).mean(axis=0), np.quantile(values, level, axis=0, method="inverted_cdf")
    # The other order of a pair has the inverse permutations. With both, no order of the embeddings matters.
    p, quantile = ((tail + tail.T) / 2 for tail in tails)
    return p, np.minimum(quantile, 1)


def permuted_cka(embeddings: Sequence[CentredEmbedding], orders: Indices) -> Floats:
    """Compute the biased CKA of every embedding and every other whose rows are in another order.

    Args:
        embeddings: The embeddings, m of them.
        orders: Permutations of the rows, `[permutations, n]`.

    Returns:
        `[permutations, m, m]`; the rows of the second embedding are permuted.
    """
    n = embeddings[0].n
    grams = np.empty((n * n, len(embeddings)))
    for index, x in enumerate(embeddings):
        rows = x.centred()
        gram = rows @ rows.T
        grams[:, index] = (gram / np.linalg.norm(gram)).ravel()

    values = np.zeros((len(orders), len(embeddings), len(embeddings)))
    upper, lower = np.triu_indices(n)
    for start in range(0, len(upper), CHUNK):
        i, j = upper[start : start + CHUNK], lower[start : start + CHUNK]
        # Symmetric: an entry off the diagonal counts twice.
        entries = np.where(i == j, 1, 2) * grams[i * n + j].T
        for value, order in zip(values, orders, strict=True):
            value += entries @ grams.take(order[i] * n + order[j], axis=0)
    return values

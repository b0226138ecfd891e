"""The null of linear CKA by drawn permutations, for embeddings with outliers.

Where single rows lie far from all others, CKA under permutations depends on where these rows go: it is large where
those of both embeddings meet, and small otherwise. No gamma distribution has that form. Skewness that comes from such
rows is told from that of leading directions by the row lengths (`headstart.metrics.similarity.permutation_moments`).

The p value counts the given order as one of the permutations: Phipson and Smyth, "Permutation p-values should never be
zero", Statistical Applications in Genetics and Molecular Biology 9, 2010, equation 2. So does the quantile.
"""

from collections.abc import Sequence

import numpy as np

from headstart.metrics.arrays import Floats, Indices, to_host
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Workspace
from headstart.metrics.similarity.permutation_moments import SEED

PERMUTATIONS = 999
# The most entries of all Gram matrices, 160 MB: 1,000 stimuli of 20 models, whose permutations take a minute.
MOST_ENTRIES = 20_000_000
# Entries of a Gram matrix that are compared at a time, which fit into the cache.
CHUNK = 2**14
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
        `(p, quantile)`, symmetric `[m, m]`; None where all Gram matrices together are too large.
    """
    n, m = embeddings[0].n, len(embeddings)
    if n * n * m > MOST_ENTRIES:
        return None
    generator = np.random.default_rng(SEED)
    orders = generator.permuted(np.tile(np.arange(n), (PERMUTATIONS, 1)), axis=1)
    values = np.concatenate([cka[None], permuted_cka(embeddings, orders)])
    tails = (values > cka - TIE).mean(axis=0), np.quantile(values, level, axis=0, method="inverted_cdf")
    # The other order of a pair has the inverse permutations. With both, no order of the embeddings matters.
    p, quantile = ((each + each.T) / 2 for each in tails)
    return p, quantile


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
        rows = to_host(x.centred(slice(None), Workspace()))
        grams[:, index] = (rows @ rows.T).ravel()
    grams /= np.linalg.norm(grams, axis=0)

    values = np.zeros((len(orders), len(embeddings), len(embeddings)))
    upper, lower = np.triu_indices(n)
    for start in range(0, len(upper), CHUNK):
        i, j = upper[start : start + CHUNK], lower[start : start + CHUNK]
        # Symmetric: an entry off the diagonal counts twice.
        entries = np.where(i == j, 1, 2) * grams[i * n + j].T
        for value, order in zip(values, orders, strict=True):
            value += entries @ grams.take(order[i] * n + order[j], axis=0)
    return values

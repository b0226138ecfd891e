"""Representational similarity analysis (RSA), the correlation between dissimilarities of stimuli in two embeddings.

The representational dissimilarity matrix (RDM) of an embedding holds, for every pair of stimuli, 1 minus the Pearson
correlation of their rows. The similarity of two embeddings is the correlation of the upper triangles of their RDMs,
over the n (n - 1) / 2 pairs of stimuli. It is Pearson's, or Spearman's, which uses only the order of the
dissimilarities. Source: Kriegeskorte, Mur and Bandettini, "Representational similarity analysis - connecting the
branches of systems neuroscience", Frontiers in Systems Neuroscience 2008. They measure dissimilarity by 1 -
correlation, and recommend rank correlation between RDMs where no linear relation can be assumed.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.centred_embedding import Embedding, UnitRows, read_unit_rows
from headstart.metrics.similarity.cka import compute_pairs, gram_tiles
from headstart.metrics.similarity.gram_products import to_cosines

# Differences between correlations of rows up to this are rounding errors.
DIGITS = 12


def pairwise_rsa_pearson(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the Pearson correlation between the RDMs of every pair of m embeddings.

    Every embedding is multiplied with itself once, tile by tile, and no RDM is kept. Memory besides the embeddings:
    256 MiB of tiles, and two blocks of rows in float64.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each; memory-mapped arrays are read in
            blocks, several times.

    Returns:
        Symmetric `[m, m]` from -1 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`; or RSA is undefined for an embedding, named as
            `embeddings[3]`. The reason is a row that is the same in all columns, or equal dissimilarities, as with 2
            stimuli.
    """
    read = read_unit_rows(embeddings, "RSA", correlated=True)
    n, m = read[0].n, len(read)
    # The sum of all products of rows is the square of their sum. Subtracting the mean before tiles are multiplied
    # keeps all digits of small differences between correlations.
    sums = [x.sum() for x in read]
    means = [(float(total @ total) - n) / (n * (n - 1)) for total in sums]

    products = np.zeros((m, m))
    for rows, columns, tile in gram_tiles(read):
        flat = tile.reshape(m, -1)
        for gram, mean in zip(flat, means, strict=True):
            gram -= mean
            if rows == columns:
                gram[:: tile.shape[2] + 1] = 0
        products += (1 if rows == columns else 2) * (flat @ flat.T)
    return _correlations(products / (n * (n - 1)), read), None


def pairwise_rsa_spearman(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the Spearman correlation between the RDMs of every pair of m embeddings.

    Dissimilarities that are equal to 12 digits share their mean rank. Every RDM is ranked once. Memory besides the
    embeddings: the ranks, 2 m n^2 bytes; about 20 n^2 bytes for ranking one RDM; 256 MiB of tiles.

    Args:
        embeddings: As for `pairwise_rsa_pearson`.

    Returns:
        As for `pairwise_rsa_pearson`.

    Raises:
        ValueError: As `pairwise_rsa_pearson`; or there are more than 65,536 stimuli, whose pairs have no 32-bit ranks.
    """
    read = read_unit_rows(embeddings, "RSA", correlated=True)
    n, m = read[0].n, len(read)
    if n > 2**16:
        raise ValueError(f"{read[0].name}: {n} rows, but RSA by Spearman ranks the pairs of at most {2**16}")
    pairs = n * (n - 1) // 2
    ranks = np.empty((m, pairs), dtype=np.uint32)
    for row, x in zip(ranks, read, strict=True):
        row[:] = _doubled_ranks(compute_pairs(x))

    products, step = np.zeros((m, m)), max(1, cka.BLOCK_BYTES // (8 * m))
    for start in range(0, pairs, step):
        # Twice the mean rank is the number of pairs plus 1; dividing keeps correlations at most 1.
        centred = (ranks[:, start : start + step] - (pairs + 1.0)) / pairs
        products += centred @ centred.T
    return _correlations(products / pairs, read), None


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    """Rank values, highest dissimilarity last; ties share twice their mean rank, which is a whole number."""
    _, groups, counts = np.unique(-values.round(DIGITS), return_inverse=True, return_counts=True)
    return np.asarray((2 * counts.cumsum() - counts + 1)[groups])


def _correlations(covariances: Floats, embeddings: Sequence[UnitRows]) -> Floats:
    """Turn the covariances of dissimilarities or their ranks, `[m, m]`, into correlations."""
    variances = covariances.diagonal()
    for x, variance in zip(embeddings, variances, strict=True):
        if variance <= 10.0 ** (-2 * DIGITS):
            raise ValueError(f"{x.name}: RSA is undefined where all pairs of rows are equally dissimilar")
    return to_cosines(covariances, np.sqrt(variances), lowest=-1)

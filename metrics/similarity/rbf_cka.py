"""Centred kernel alignment (CKA) with the RBF kernel, which weighs near stimuli more than far ones, in float64.

CKA is computed as in `headstart.metrics.similarity.cka`, with the biased and the debiased HSIC. With d_ij the Euclidean
distance between rows i and j of an embedding, it uses the centred matrices of

    K_ij = exp(-d_ij^2 / (2 s^2)),    s = fraction * (median of d_ij over all i < j)

Source: Kornblith et al., "Similarity of Neural Network Representations Revisited", ICML 2019, section 3. They choose
the bandwidth s as a fraction of the median distance between examples, and report fractions of 0.2, 0.4 and 0.8 (table
2). The bandwidth grows with the embedding, so scaling an embedding does not change CKA. As the fraction grows, CKA
approaches linear CKA (Alvarez, "Gaussian RBF Centered Kernel Alignment (CKA) in the Large Bandwidth Limit", 2021,
arXiv:2112.09305).
"""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding, read_embeddings
from headstart.metrics.similarity.cka import compute_pairs, gram_tiles
from headstart.metrics.similarity.gram_products import GramProducts

FRACTION = 0.8
# Squared distances below this part of the squared lengths of centred rows consist of rounding errors.
LOST = 1e-10


@np.errstate(over="ignore", invalid="ignore")
def pairwise_rbf_cka(embeddings: Iterable[Embedding], fraction: float = FRACTION) -> tuple[Floats, Floats | None]:
    """Compute the CKA with the RBF kernel of every pair of m embeddings, by both estimates.

    Every embedding is multiplied with itself twice, for the median and for the kernel, and never for a pair. Memory
    besides the embeddings: n (n - 1) / 2 distances of one, 256 MiB of tiles, m n numbers, and two blocks of rows.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each; memory-mapped arrays are read in
            blocks, several times.
        fraction: The bandwidth as a part of the median distance between rows, positive.

    Returns:
        Biased and debiased, symmetric `[m, m]` with ones on the diagonal; None for a debiased one that is undefined, as
        below 4 rows.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`; or the median distance is 0 or lost to rounding,
            for example because most rows are equal; or the fraction is not positive.
    """
    if not fraction > 0:
        raise ValueError(
            f"fraction: {fraction} is given, but the bandwidth must be a positive part of the median distance"
        )
    read = read_embeddings(embeddings)
    n, m = read[0].n, len(read)
    lengths = [_squared_lengths(x) for x in read]
    exponents = [-0.5 / (fraction * _median_distance(*pair)) ** 2 for pair in zip(read, lengths, strict=True)]

    # The kernel less its value at the median distance: centring removes constants, and where the kernel is nearly
    # constant, as for large fractions, the difference keeps all digits.
    constant = math.expm1(-0.5 / fraction**2)
    products, sums = np.zeros((m, m)), np.zeros((m, n))
    for rows, columns, tile in gram_tiles(read):
        for gram, length, exponent in zip(tile, lengths, exponents, strict=True):
            squares = _squared_distances(length, gram, rows, columns)
            squares *= exponent
            np.expm1(squares, out=squares)
            squares -= constant

        flat = tile.reshape(m, -1)
        products += (1 if rows == columns else 2) * (flat @ flat.T)
        sums[:, rows] += tile.sum(2)
        if rows != columns:
            sums[:, columns] += tile.sum(1)

    means, totals = sums / n, sums.mean(axis=1) / n
    centred = products - 2 * n * means @ means.T + n * n * np.outer(totals, totals)
    diagonals = -constant - 2 * means + totals[:, None]
    return GramProducts.of(centred, diagonals).estimates([x.name for x in read])


def _squared_lengths(x: CentredEmbedding) -> Floats:
    """Compute the squared lengths of the centred rows, `[n]`; a ValueError if they are not finite."""
    lengths = x.squared_lengths()
    if not math.isfinite(float(lengths.sum())):
        raise ValueError(f"{x.name}: contains NaN or infinity, or values whose squares exceed float64")
    return lengths


def _squared_distances(lengths: Floats, gram: Floats, rows: slice, columns: slice) -> Floats:
    """Turn a tile of a centred Gram matrix into the squared distances of its rows, in place."""
    gram *= -2
    gram += lengths[rows][:, None]
    gram += lengths[columns]
    if rows == columns:
        gram.reshape(-1)[:: len(gram) + 1] = 0
    return np.clip(gram, 0, None, out=gram)


def _median_distance(x: CentredEmbedding, lengths: Floats) -> float:
    """Compute the median of the distances between different rows."""
    distances = compute_pairs(x, partial(_squared_distances, lengths))
    median = float(np.median(np.sqrt(distances, out=distances), overwrite_input=True))
    if not median**2 > LOST * float(np.median(lengths)):
        raise ValueError(
            f"{x.name}: RBF CKA is undefined where the median distance between rows is 0, or lost to rounding"
        )
    return median

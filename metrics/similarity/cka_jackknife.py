"""Intervals of the linear CKA of embeddings over stimuli, by the jackknife that leaves out one stimulus at a time.

Without row i, and centred again, the inner product of two centred Gram matrices K and L is

    HSIC_(-i) = <K, L> - 2 n / (n - 1) p_i + (n / (n - 1))^2 k_ii l_ii,    p_i = sum_j k_ij l_ij

because the rows of both sum to 0. So the CKA of all pairs without each of the stimuli follows from one more pass over
the Gram matrices. Its variance is `(n - 1) / n sum_i (CKA_(-i) - mean)^2` (Efron and Tibshirani, "An Introduction to
the Bootstrap", 1993, equation 11.5). The interval is that of Student's t with n - 1 degrees of freedom (Tukey, "Bias
and confidence in not-quite large samples", Annals of Mathematical Statistics 29, 1958).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding
from headstart.metrics.similarity.cka import BLOCK_BYTES, gram_form_is_cheaper, read_and_multiply
from headstart.metrics.similarity.gram_products import DEGENERATE, GramProducts

# Differences of the CKA without each row from that of all: sums and sums of squares `[m, m]`, means over pairs `[n]`.
Differences = tuple[Floats, Floats, Floats]

COVERAGE = 0.95


@dataclass(frozen=True)
class CkaIntervals:
    """95 % intervals of biased linear CKA over stimuli, within 0 and 1.

    NaN where CKA without a stimulus is undefined, and for three stimuli, of which two are left: their CKA is always 1.

    Attributes:
        low: Lower ends for every pair of m embeddings, `[m, m]`; 1 on the diagonal.
        high: Upper ends.
        mean: Both ends for the mean over pairs; NaN where there is no pair.
    """

    low: Floats
    high: Floats
    mean: tuple[float, float]


def cka_intervals(embeddings: Iterable[Embedding]) -> CkaIntervals:
    """Compute the linear CKA's intervals over stimuli, of every pair of m embeddings and of the mean over pairs.

    Args:
        embeddings: Embeddings of the same stimuli, `[n, d_i]` each, as for `metrics.pairwise_cka`, which takes as much
            memory.

    Returns:
        The intervals around the biased estimate.

    Raises:
        ValueError: As `metrics.pairwise_cka` for the biased estimate.
    """
    read, products = read_and_multiply(embeddings)
    products.normed([x.name for x in read], debiased=False)
    return jackknife(read, products)


def jackknife(embeddings: Sequence[CentredEmbedding], products: GramProducts) -> CkaIntervals:
    """Compute the intervals as `cka_intervals` does, from the products of embeddings that have a CKA."""
    from scipy.special import stdtrit  # SciPy is slow to import

    n, m = products.n, len(embeddings)
    biased = products.cka([x.name for x in embeddings], debiased=False)
    without = _without_by_rows if gram_form_is_cheaper(embeddings) else _without_by_pairs
    with np.errstate(invalid="ignore", divide="ignore"):
        sums, squares, joint = without(embeddings, products, biased)

    width = float(stdtrit(n - 1, (1 + COVERAGE) / 2)) if n > 3 else np.nan
    half_width = width * np.sqrt(np.maximum(squares - sums**2 / n, 0) * (n - 1) / n)
    np.fill_diagonal(half_width, 0)
    low, high = np.clip([biased - half_width, biased + half_width], 0, 1)
    if m == 1:
        return CkaIntervals(low, high, (np.nan, np.nan))

    half = width * float(np.sqrt(((joint - joint.mean()) ** 2).sum() * (n - 1) / n))
    centre = float(biased[np.triu_indices(m, 1)].mean())
    return CkaIntervals(low, high, (max(centre - half, 0.0), min(centre + half, 1.0)))


def _without_by_rows(embeddings: Sequence[CentredEmbedding], products: GramProducts, biased: Floats) -> Differences:
    """Compute the differences from stripes of rows of all Gram matrices."""
    n, m = products.n, len(embeddings)
    sums, squares, joint = np.zeros((m, m)), np.zeros((m, m)), np.empty(n)
    pairs = np.triu_indices(m, 1)
    # Besides the stripe, each row takes about seven matrices of all pairs.
    step = max(1, BLOCK_BYTES // (8 * m * (n + 7 * m)))
    stripes = np.empty((min(step, n), m, n))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        stripe = stripes[: rows.stop - start]
        for index, x in enumerate(embeddings):
            _multiply_blocks(x, rows, stripe[:, index])

        by_row = stripe @ stripe.swapaxes(1, 2)
        diagonals = np.stack([stripe[r, :, start + r] for r in range(len(stripe))])
        outer = diagonals[:, :, None] * diagonals[:, None, :]
        without = _without(products.grams, by_row, outer, n)
        self_terms = _defined(np.einsum("rmm->rm", without), products.grams.diagonal())
        norms = np.sqrt(self_terms)  # before multiplying: products of two self terms may be 0 or infinite

        differences = without / (norms[:, :, None] * norms[:, None, :]) - biased
        sums += differences.sum(axis=0)
        squares += (differences**2).sum(axis=0)
        joint[rows] = differences[:, pairs[0], pairs[1]].mean(axis=1) if m > 1 else 0
    return sums, squares, joint


def _multiply_blocks(x: CentredEmbedding, rows: slice, out: Floats) -> None:
    """Fill a stripe of a Gram matrix, `[rows, n]`, reading the embedding in blocks."""
    first = x.centred(rows)
    step = max(len(first), BLOCK_BYTES // (16 * x.width))
    for start in range(0, x.n, step):
        columns = slice(start, min(start + step, x.n))
        out[:, columns] = first @ x.centred(columns).T


def _without_by_pairs(embeddings: Sequence[CentredEmbedding], products: GramProducts, biased: Floats) -> Differences:
    """Compute the differences from the products of the features of every pair."""
    n, m = products.n, len(embeddings)
    sums, squares, joint = np.zeros((m, m)), np.zeros((m, m)), np.zeros(n)
    diagonals, norms = [x.squared_lengths() for x in embeddings], np.empty((m, n))
    for i, x in enumerate(embeddings):
        without = _without(products.grams[i, i], _row_products(x, x), diagonals[i] ** 2, n)
        norms[i] = np.sqrt(_defined(without, products.grams[i, i]))

    for i, j in combinations(range(m), 2):
        by_row = _row_products(embeddings[i], embeddings[j])
        without = _without(products.grams[i, j], by_row, diagonals[i] * diagonals[j], n)
        differences = without / (norms[i] * norms[j]) - biased[i, j]
        sums[i, j] = sums[j, i] = differences.sum()
        squares[i, j] = squares[j, i] = (differences**2).sum()
        joint += differences / (m * (m - 1) / 2)
    return sums, squares, joint


def _row_products(x: CentredEmbedding, y: CentredEmbedding) -> Floats:
    """Compute `sum_j k_ij l_ij`, `[n]`."""
    n = x.n
    step = max(1, BLOCK_BYTES // (16 * (x.width + y.width)))
    blocks = [slice(start, start + step) for start in range(0, n, step)]
    product: Floats | float = 0.0
    for rows in blocks:
        product += x.centred(rows).T @ y.centred(rows)
    by_row = np.empty(n)
    for rows in blocks:
        first, second = x.centred(rows), y.centred(rows)
        by_row[rows] = ((first @ product) * second).sum(1)
    return by_row


def _without(whole: Floats | float, by_row: Floats, diagonals: Floats, n: int) -> Floats:
    """Compute the inner products of Gram matrices without each row, centred again."""
    ratio = n / (n - 1)
    return np.asarray(whole - 2 * ratio * by_row + ratio**2 * diagonals)


def _defined(own: Floats, whole: Floats | float) -> Floats:
    """Replace self terms that consist of rounding errors by NaN: without a row the others are equal."""
    return np.asarray(np.where(own > DEGENERATE * whole, own, np.nan))

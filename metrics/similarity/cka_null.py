"""Linear CKA against its null, the CKA of the same embeddings with the stimuli of one of them shuffled.

Biased CKA grows with the widths and shrinks with the number of stimuli, whatever the embeddings have in common. The
**null** of a pair is the distribution of its CKA over all permutations of the rows of one embedding. It shows what is
due to the sizes alone. Its mean and standard deviation are exact (`headstart.metrics.similarity.permutation_moments`).
Its tail is that of the Pearson type III distribution, a shifted gamma distribution, of the same mean, standard
deviation and skewness. This follows Kazi-Aoual, Hitier, Sabatier and Lebreton, "Refined approximations to permutation
tests for multivariate inference", Computational Statistics & Data Analysis 20, 1995. Where outliers shape the null, the
tail is that of drawn permutations (`headstart.metrics.similarity.drawn_nulls`). The calibrated value is that of Gröger,
Wen and Brbić, "Revisiting the Platonic Representation Hypothesis: An Aristotelian View", 2026. Its quantile q is that
of this tail, instead of that of random permutations:

    calibrated = max(0, (CKA - q) / (1 - q))
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding
from headstart.metrics.similarity.cka import read_and_multiply
from headstart.metrics.similarity.drawn_nulls import PERMUTATIONS, drawn_tails
from headstart.metrics.similarity.gram_products import GramProducts
from headstart.metrics.similarity.permutation_moments import mean_and_variance, skewness

LEVEL = 0.95
# With a smaller skewness, the gamma distribution equals the normal one, and its shape exceeds the range of SciPy.
SYMMETRIC = 1e-4
# Permutations are drawn where the row lengths alone make a skewness above the first limit, or all rows one above the
# second. Leading directions of normal rows make at most 2.83, the skewness of a chi-squared distribution of one degree
# of freedom. A few rows that share a direction make more, and none of them need be long. Of 1,490 simulated pairs of 20
# to 200 rows (normal, Student's t, log-normal, rectified, clustered, with outliers), 390 lie below both limits. In 18
# of them p is off by more than 0.1, by at most 0.2. In 86 of the 117 above the second limit alone, by up to 0.49.
OUTLYING = 0.5
SKEWED = 2.5


@dataclass(frozen=True)
class CalibratedCka:
    """The linear CKA of all pairs of m embeddings with its null; every matrix is symmetric, `[m, m]`.

    A null compares one embedding with another whose rows are shuffled. On the diagonal, both are the same embedding.

    Attributes:
        biased: Biased CKA.
        debiased: Debiased CKA; None where it is undefined for one embedding or more.
        null_mean: Mean of biased CKA under permutations.
        null_sd: Standard deviation under permutations; 0 where all have the same CKA, as for two stimuli.
        null_skewness: Skewness under permutations; 0 where the standard deviation is.
        null_quantile: The quantile of the null at `level`, at most 1.
        level: The quantile at which a calibrated value is 0.
        z: Standard deviations from the null's mean to the biased CKA; NaN where the standard deviation is 0.
        p: Share of permutations with as high a CKA; 1 where all have the same CKA.
        outlying: The pairs of different embeddings whose null is shaped by a few rows far from all others.
        permutations: Number of permutations that were drawn for these pairs. It is 0 where none are outlying, or where
            there are too many stimuli to draw any; p is rough in the latter case.
        calibrated: `max(0, (biased - null_quantile) / (1 - null_quantile))`; 0 where the quantile is 1, or all
            permutations have the same CKA.
    """

    biased: Floats
    debiased: Floats | None
    null_mean: Floats
    null_sd: Floats
    null_skewness: Floats
    null_quantile: Floats
    level: float
    z: Floats
    p: Floats
    calibrated: Floats
    outlying: Flags
    permutations: int


def calibrated_cka(embeddings: Iterable[Embedding], level: float = LEVEL) -> CalibratedCka:
    """Compute the linear CKA of every pair of m embeddings, and how far it lies above its null.

    Mean and standard deviation of a null follow from what the CKA is computed from. Its skewness, which shapes the
    tail, is exact up to 384 stimuli, and estimated from a sample of 384 beyond. Of pairs with outliers, the tail is
    that of 999 drawn permutations.

    Args:
        embeddings: As for `metrics.pairwise_cka`.
        level: The quantile of the null at which a calibrated value is 0, between 0 and 1.

    Returns:
        CKA by both estimates, the nulls, and the biased CKA against them.

    Raises:
        ValueError: As `metrics.pairwise_cka` for the biased estimate; or the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: must be between 0 and 1, not {level}")
    return calibrate(*read_and_multiply(embeddings), level)


def calibrate(read: Sequence[CentredEmbedding], products: GramProducts, level: float = LEVEL) -> CalibratedCka:
    """Compute the result of `calibrated_cka` from the products of embeddings."""
    biased, debiased = products.estimates([x.name for x in read])

    null_mean, variance = mean_and_variance(products)
    null_sd = np.sqrt(variance)
    null_skewness, of_lengths = skewness(read, products)

    quantile = np.minimum(null_mean + null_sd * _pearson_quantile(level, null_skewness), 1)
    z = np.divide(biased - null_mean, null_sd, out=np.full_like(biased, np.nan), where=null_sd > 0)
    p = np.where(null_sd > 0, _pearson_tail(z, null_skewness), 1.0)

    outlying = (of_lengths > OUTLYING) | (null_skewness > SKEWED)
    np.fill_diagonal(outlying, val=False)
    drawn_rows = np.flatnonzero(outlying.any(axis=0)).tolist()
    part = np.ix_(drawn_rows, drawn_rows)
    drawn = drawn_tails([read[i] for i in drawn_rows], biased[part], level) if drawn_rows else None
    if drawn is not None:
        p[part], quantile[part] = (
            np.where(outlying[part], new, old[part]) for new, old in zip(drawn, (p, quantile), strict=True)
        )

    above = np.maximum(biased - quantile, 0)
    calibrated = np.divide(above, 1 - quantile, out=np.zeros_like(above), where=(null_sd > 0) & (quantile < 1))
    nulls = (null_mean, null_sd, null_skewness, quantile, level)
    return CalibratedCka(biased, debiased, *nulls, z, p, calibrated, outlying, 0 if drawn is None else PERMUTATIONS)


def _pearson_tail(z: Floats, skew: Floats) -> Floats:
    """Compute the probability above z in the Pearson type III distribution of mean 0, variance 1 and a skewness."""
    from scipy.special import gammainc, gammaincc, ndtr  # SciPy is slow to import

    shape, steps = _gamma(skew)
    # A negative skewness mirrors the distribution, so that its upper tail is the lower one of the gamma distribution.
    upper, lower = (side(shape, np.maximum(shape + np.sign(skew) * z * steps, 0)) for side in (gammaincc, gammainc))
    return np.asarray(np.where(np.abs(skew) < SYMMETRIC, ndtr(-z), np.where(skew > 0, upper, lower)))


def _pearson_quantile(level: float, skew: Floats) -> Floats:
    """Compute the quantile at a level of the Pearson type III distribution of mean 0, variance 1 and a skewness."""
    from scipy.special import gammainccinv, gammaincinv, ndtri

    shape, steps = _gamma(skew)
    gamma = np.where(skew > 0, gammaincinv(shape, level), gammainccinv(shape, level))
    return np.asarray(np.where(np.abs(skew) < SYMMETRIC, ndtri(level), np.sign(skew) * (gamma - shape) / steps))


def _gamma(skew: Floats) -> tuple[Floats, Floats]:
    """Return shape and standard deviation of the gamma distribution of scale 1 and the absolute skewness."""
    shape = 4 / np.maximum(np.abs(skew), SYMMETRIC) ** 2
    return shape, np.sqrt(shape)

"""Metrics by Fisher discriminants: SFDA, and ETran and NCTI, whose terms are scaled over a pool of sources."""

import math

import numpy as np

from headstart.metrics.arrays import Array, Floats, check_choice
from headstart.metrics.transferability import fisher_discriminant as discriminants
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, Variant, statistics_of

# The released program of ETran weights the terms so, and takes this share of the samples, in thousandths, for the
# energy.
ETRAN_WEIGHTS = np.array([0.15, 0.85])
LOWEST = 5
# The released program of NCTI has these numbers of principal components, and of those that decide the shrinkage.
COMPONENTS, DECIDING = 64, 32
# The sign of each term of NCTI.
NCTI_SIGNS = np.array([1.0, 1.0, -1.0])
# Smaller differences of terms, relative or absolute, are rounding errors.
SAME = 1e-10


def sfda(features: Array | FeatureStatistics, labels: Array | None = None) -> float:
    """Compute SFDA, the probability of the labels by Fisher discriminants on features made harder to separate.

    Source: Wenqi Shao et al., "Not All Models Are Equal: Predicting Model Transferability in a Self-challenging Fisher
    Space", ECCV 2022, section 3. Regularised discriminants predict for every sample x the probability p of its own
    class. The sample is then mixed with the mean m of the other classes, `p x + (1 - p) m`: the less certain, the more.
    Discriminants with the same shrinkage are fitted to the mixed samples. The score is the mean probability that these
    predict for the labels.

    Where text and released program differ, it follows the program, which computed the published scores. Covariances are
    means over samples and shrunk towards their mean variance. A second softmax over the probabilities softens p. The
    mean of the other classes' means is m. The score is of probabilities, not of their logarithms. The program
    approximates the largest eigenvalue by three steps; here it is exact. The score depends on the scale of the features
    through the shrinkage.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.

    Returns:
        The score, from 0 to 1; 1 for a single class, the sum of squares of the classes' shares for constant features.
    """
    statistics = statistics_of(features, labels)
    if statistics.classes == 1:
        return 1.0
    rows, axes = discriminants.rows_and_axes(statistics)
    probabilities, shrinkage = discriminants.class_probabilities(rows, statistics, statistics.dimensions, axes=axes)

    of_own_class = discriminants.of_own_class(discriminants.softmax(probabilities), statistics)[:, None]
    means = statistics.class_sums(rows) / statistics.counts
    others = (means.sum(0) - means) / (statistics.classes - 1)
    mixed = np.empty_like(rows)
    for other, members in zip(others, statistics.class_rows, strict=True):
        mixed[members] = of_own_class[members] * rows[members] + (1 - of_own_class[members]) * other

    probabilities, _ = discriminants.class_probabilities(mixed, statistics, statistics.dimensions, shrinkage, axes)
    return float(discriminants.of_own_class(probabilities, statistics).mean())


def etran_terms(
    features: Array | FeatureStatistics, labels: Array | None = None, variant: Variant = "released"
) -> tuple[float, float]:
    """Compute the terms of ETran for classification: the energy, and the probability of the labels.

    Source: as for `etran`. The energy of a sample is the logarithm of the sum of the exponentials of its features. It
    is high where the target resembles the data of the source. The term is the mean over the 0.5 % of the samples with
    the lowest energies, at least one sample. The released program has no energy for fewer than 200 samples. The other
    term is the mean probability that a classifier predicts for the labels; the regression score does not apply.

    The classifier of the text is Fisher's linear discriminants, `published`, with the regularisation of SFDA. With
    fewer samples than features, these separate all samples, and the term is 1 for nearly every source. The released
    program computes something else. It passes a matrix that is not symmetric to a function for symmetric ones, whose
    eigenvectors are orthonormal. It weighs the features by the product of these with their transpose, which is the
    identity. The result is the nearest class mean without any covariance, `released`. It depends on the scale of the
    features.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        variant: `released`, by which the published scores were computed, or `published`.

    Returns:
        The two terms.

    Raises:
        ValueError: The variant is none of these, or the features or labels do not fit.
    """
    check_choice("variant", variant, Variant)
    statistics = statistics_of(features, labels)
    energies = _energies(statistics.centred + statistics.mean)
    count = max(1, LOWEST * statistics.samples // 1000)
    lowest = energies[np.argsort(energies)[:count]]
    if variant == "released":
        probabilities = discriminants.nearest_mean_probabilities(statistics)
    else:
        discriminant_rows, axes = discriminants.rows_and_axes(statistics)
        probabilities, _ = discriminants.class_probabilities(
            discriminant_rows, statistics, statistics.dimensions, axes=axes
        )
    return float(lowest.mean()), float(discriminants.of_own_class(probabilities, statistics).mean())


def _energies(rows: Floats) -> Floats:
    """Compute the logarithm of the sum of exponentials of every row, `[samples]`."""
    highest = np.amax(rows, 1)
    return np.asarray(highest + np.log(np.exp(rows - highest[:, None]).sum(1)))


def etran(terms: Floats, pool: Floats | None = None) -> Floats:
    """Compute ETran of the sources of a pool from their terms.

    Each term is scaled to run from 0 to 1 over the pool. The scores are `0.15 energy + 0.85 classification`. A score is
    the standing of a source in its pool, and changes with the pool.

    Source: Mohsen Gholami et al., "ETran: Energy-Based Transferability Estimation", ICCV 2023; the weights are those of
    the program released with it.

    Args:
        terms: Terms of `etran_terms`, `[..., sources, 2]`.
        pool: The terms that set the scale; by default the same.

    Returns:
        The scores, `[..., sources]`, from 0 to 1 on their own scale. A term that is the same for all of a pool counts
        as 0.
    """
    return np.asarray(_scaled_over_pool(terms, pool) @ ETRAN_WEIGHTS)


def ncti_terms(features: Array | FeatureStatistics, labels: Array | None = None) -> tuple[float, float, float]:
    """Compute the terms of NCTI: how near the features are to the collapse at the end of training.

    Source: as for `ncti`, section 4. There are three terms. The first is the nuclear norm of the centred features along
    the discriminant axes: how near they are to the geometry of simplex-encoded labels. The second is the mean
    probability that discriminants predict for the labels: how near features are to the nearest class centre. The third
    is the logarithm of the sum over classes of the nuclear norm of these probabilities: how far they are from no spread
    within classes.

    It follows the released program, which computed the published scores. Discriminants are fitted on 64 principal
    components. The shrinkage is exp(-v), at least 1e-10, where v is the sum of the variances along the first 32 of
    them. The axes have unit variance within classes.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.

    Returns:
        The three terms.

    Raises:
        ValueError: There is a single class, or the features are the same for all samples.
    """
    statistics = statistics_of(features, labels)
    if statistics.classes == 1 or not statistics.spectrum.rank:
        raise ValueError("NCTI needs two classes and features that differ")

    rows = statistics.principal_components(min(COMPONENTS, statistics.spectrum.rank))
    variances = statistics.spectrum.eigenvalues[:DECIDING] / (statistics.samples - 1)
    shrinkage = max(math.exp(-float(variances.sum())), discriminants.LEAST_SHRINKAGE)

    probabilities, _ = discriminants.class_probabilities(rows, statistics, rows.shape[1], shrinkage)
    spread = sum(_nuclear_norm(probabilities[members]) for members in statistics.class_rows)
    near = float(discriminants.of_own_class(probabilities, statistics).mean())
    return _nuclear_norm(discriminants.along_discriminants(rows, statistics, shrinkage)), near, math.log(spread)


def ncti(terms: Floats, pool: Floats | None = None) -> Floats:
    """Compute NCTI of the sources of a pool from their terms.

    Each term is scaled to run from 0 to 1 over the pool. The scores are `seli + ncc - vc`. A score is the standing of a
    source in its pool, and changes with the pool.

    Source: Zijian Wang et al., "How Far Pre-trained Models Are from Neural Collapse on the Target Dataset Informs their
    Transferability", ICCV 2023, section 4.

    Args:
        terms: Terms of `ncti_terms`, `[..., sources, 3]`.
        pool: The terms that set the scale; by default the same.

    Returns:
        The scores, `[..., sources]`, from -1 to 2 on their own scale. A term that is the same for all of a pool counts
        as 0.
    """
    return np.asarray(_scaled_over_pool(terms, pool) @ NCTI_SIGNS)


def _nuclear_norm(matrix: Floats) -> float:
    return float(np.linalg.norm(matrix, "nuc"))


def _scaled_over_pool(terms: Floats, pool: Floats | None = None) -> Floats:
    """Scale each term to run from 0 to 1 over the sources of a pool; a constant term becomes 0.

    Args:
        terms: `[..., sources, terms]`.
        pool: The terms that set the scale, `[..., sources, terms]`; by default the scaled ones.
    """
    pool = terms if pool is None else pool
    low, high = pool.min(-2, keepdims=True), pool.max(-2, keepdims=True)
    differ = ~np.isclose(low, high, rtol=SAME, atol=SAME)
    return np.asarray(np.divide(terms - low, high - low, out=np.zeros_like(terms), where=differ))

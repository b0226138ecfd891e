"""NCTI."""

import math

import numpy as np

from headstart.metrics.arrays import Array, Floats, namespace
from headstart.metrics.transferability import fisher_discriminant as discriminants
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of
from headstart.metrics.transferability.source_pools import scaled_over_pool

# The released program has these numbers of principal components, and of those that decide the shrinkage.
COMPONENTS, DECIDING = 64, 32
# The sign of each term.
SIGNS = np.array([1.0, 1.0, -1.0])


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
    return np.asarray(scaled_over_pool(terms, pool) @ SIGNS)


def _nuclear_norm(matrix: Array) -> float:
    return float(namespace(matrix).linalg.norm(matrix, "nuc"))

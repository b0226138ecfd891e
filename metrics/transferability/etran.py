"""ETran."""

import numpy as np

from headstart.metrics.arrays import Array, Floats, namespace
from headstart.metrics.transferability import fisher_discriminant as discriminants
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of
from headstart.metrics.transferability.source_pools import scaled_over_pool
from headstart.metrics.transferability.variants import Variant, check_choice

# The released program weights the terms so, and takes this share of the samples, in thousandths, for the energy.
WEIGHTS = np.array([0.15, 0.85])
LOWEST = 5


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
    lowest = energies[namespace(energies).argsort(energies)[:count]]
    if variant == "released":
        probabilities = discriminants.nearest_mean_probabilities(statistics)
    else:
        discriminant_rows, axes = discriminants.rows_and_axes(statistics)
        probabilities, _ = discriminants.class_probabilities(
            discriminant_rows, statistics, statistics.dimensions, axes=axes
        )
    return float(lowest.mean()), float(discriminants.of_own_class(probabilities, statistics).mean())


def _energies(rows: Array) -> Array:
    """Compute the logarithm of the sum of exponentials of every row, `[samples]`."""
    xp = namespace(rows)
    highest = xp.amax(rows, 1)
    return highest + xp.log(xp.exp(rows - highest[:, None]).sum(1))


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
    return np.asarray(scaled_over_pool(terms, pool) @ WEIGHTS)

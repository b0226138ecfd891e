"""ETran."""

import numpy as np

from headstart.metrics.arrays import Array, Floats, namespace
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.fisher_discriminant import class_probabilities, of_own_class, rows_and_axes
from headstart.metrics.transferability.source_pools import scaled_over_pool

# The released program weights the terms so, and takes this share of the samples, in thousandths, for the energy.
WEIGHTS = np.array([0.15, 0.85])
LOWEST = 5


def etran_terms(features: Array | FeatureStatistics, labels: Array | None = None) -> tuple[float, float]:
    """Compute the terms of ETran for classification: the energy, and the probability of the labels.

    Source: as for `etran`. The energy of a sample is the logarithm of the sum of the exponentials of its features, high
    where the target resembles the data of the source; the term is the mean over the 0.5 % of the samples with the
    lowest ones, one at least, as in the released program. The other term is the mean probability that linear
    discriminants give the labels, with the regularisation of SFDA; the regression score does not apply.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.

    Returns:
        The two terms.
    """
    statistics = FeatureStatistics.of(features, labels)
    rows = statistics.centred + statistics.mean
    xp = namespace(rows)
    highest = xp.amax(rows, 1)
    energies = highest + xp.log(xp.exp(rows - highest[:, None]).sum(1))
    count = max(1, LOWEST * statistics.samples // 1000)
    lowest = energies[xp.argsort(energies)[:count]]

    discriminant_rows, axes = rows_and_axes(statistics)
    probabilities, _ = class_probabilities(discriminant_rows, statistics, statistics.dimensions, axes=axes)
    return float(lowest.mean()), float(of_own_class(probabilities, statistics).mean())


def etran(terms: Floats, pool: Floats | None = None) -> Floats:
    """Compute ETran of the sources of a pool from their terms.

    Each term is scaled to run from 0 to 1 over the pool, and the scores are `0.15 energy + 0.85 classification`: a
    score is the standing of a source in its pool, and changes with the pool.

    Source: Mohsen Gholami et al., "ETran: Energy-Based Transferability Estimation", ICCV 2023; the weights are those of
    the program released with it.

    Args:
        terms: Terms of `etran_terms`, `[..., sources, 2]`.
        pool: The terms that set the scale; by default the same.

    Returns:
        The scores, `[..., sources]`, from 0 to 1 on their own scale; a term that is the same for all of a pool counts
            as 0.
    """
    return np.asarray(scaled_over_pool(terms, pool) @ WEIGHTS)

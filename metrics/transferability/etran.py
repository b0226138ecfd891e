"""ETran."""

from __future__ import annotations

from metrics.arrays import Array, namespace
from metrics.transferability.feature_statistics import FeatureStatistics
from metrics.transferability.fisher_discriminant import all_components, class_probabilities, of_own_class


def etran(features: Array | FeatureStatistics, labels: Array | None = None) -> float:
    """Compute ETran for classification, the energy of the features plus the probability of the labels by discriminants.

    Source: Mohsen Gholami et al., "ETran: Energy-Based Transferability Estimation", ICCV 2023. The energy score is the
    mean over samples of the logarithm of the sum of the exponentials of the features, which is high where the target
    looks like what the source knows. The classification score is the mean probability that linear discriminants give
    the labels; the regression score does not apply.

    How the paper weighs the two is not settled here: both are added as they are. Nor is its discriminants'
    regularisation: it is that of `metrics.transferability.fisher_discriminant`. The energy depends on the scale, the
    mean and the number of features, so that it compares sources of one architecture rather than others.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.

    Returns:
        The score.
    """
    statistics = FeatureStatistics.of(features, labels)
    rows = statistics.centred + statistics.mean
    xp = namespace(rows)
    highest = xp.amax(rows, 1)
    energy = float((highest + xp.log(xp.exp(rows - highest[:, None]).sum(1))).mean())
    probabilities, _ = class_probabilities(all_components(statistics), statistics)
    return energy + float(of_own_class(probabilities, statistics).mean())

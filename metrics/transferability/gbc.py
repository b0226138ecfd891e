"""Gaussian Bhattacharyya coefficient (GBC)."""

from typing import Literal

import numpy as np

from headstart.metrics.arrays import Array, Floats, check_choice, check_integer
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of

Covariance = Literal["spherical", "diagonal"]
Variant = Literal["textbook", "released"]

VARIANCE_FLOOR = 1e-4
PRINCIPAL_COMPONENTS = 64


def gbc(
    features: Array | FeatureStatistics,
    labels: Array | None = None,
    covariance: Covariance = "spherical",
    pca: int | None = PRINCIPAL_COMPONENTS,
    variant: Variant = "textbook",
) -> float:
    """Compute the GBC, the negative sum of the Bhattacharyya coefficients of all ordered pairs of classes.

    Source: Michal Pándy et al., "Transferability Estimation using Bhattacharyya Class Separability", CVPR 2022,
    equations 5 to 7. A class is a Gaussian with the mean and the variances of its samples. Variances are divided by the
    number of samples and raised to at least 1e-4. A spherical Gaussian has the mean of the variances in every
    direction. As the sum is over ordered pairs, each pair counts twice.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        covariance: `spherical` or `diagonal`.
        pca: How many principal components the features are first reduced to, at most; None keeps the features.
        variant: `textbook` or `released`. In the spherical distance, `released` leaves out the number of dimensions as
            a factor of the logarithm of the variances. So did the program behind the scores that Andrea Agostinelli et
            al. published with "How stable are Transferability Metrics evaluations?", ECCV 2022.

    Returns:
        The score, from -classes (classes - 1) to 0; 0 for a single class, the lowest for constant features.

    Raises:
        ValueError: An option is none of those above, or the features or labels do not fit.
    """
    check_choice("covariance", covariance, Covariance)
    check_choice("variant", variant, Variant)
    if pca is not None:
        check_integer("pca", pca, 1)
    statistics = statistics_of(features, labels)
    rows = statistics.centred if pca is None else statistics.principal_components(pca)
    means, deviations = statistics.class_moments(rows)
    variances = statistics.class_sums(deviations**2) / statistics.counts
    return 0.0 - float(class_overlaps(means, variances, covariance, variant).sum())


def class_overlaps(means: Floats, variances: Floats, covariance: Covariance, variant: Variant) -> Floats:
    """Compute the Bhattacharyya coefficients of all pairs of Gaussians, each class with all later ones in one step.

    Args:
        means: `[classes, features]`.
        variances: Not yet raised to the floor, `[classes, features]`.
        covariance: See `gbc`.
        variant: See `gbc`.

    Returns:
        `[classes, classes]`, 0 on the diagonal.
    """
    # A spherical class has one column, whose weight is its number of dimensions.
    spread, weight = np.clip(variances, VARIANCE_FLOOR, None), 1
    if covariance == "spherical":
        spread = spread.mean(1)[:, None]
        weight = means.shape[1] if variant == "textbook" else 1
    logarithms = np.log(spread).sum(1)
    overlaps = np.zeros((len(means), len(means)))
    for i in range(len(means) - 1):
        middle = (spread[i] + spread[i + 1 :]) / 2
        distances = ((means[i] - means[i + 1 :]) ** 2 / middle).sum(1) / 8
        determinants = np.log(middle).sum(1) - (logarithms[i] + logarithms[i + 1 :]) / 2
        overlaps[i, i + 1 :] = np.exp(-distances - weight * determinants / 2)
    return overlaps + overlaps.T

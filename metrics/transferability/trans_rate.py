"""TransRate."""

from numbers import Real

import numpy as np

from headstart.metrics.arrays import Array, Floats
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of

# The distortion of the published scores.
EPSILON = 1e-4


def trans_rate(features: Array | FeatureStatistics, labels: Array | None = None, epsilon: float = EPSILON) -> float:
    """Compute TransRate, the coding rate of the features less the mean coding rate of the classes.

    It is `R(Z) - mean over classes of R(Z_c)` with `R(Z) = log det(I + Z'Z / (n epsilon)) / 2`. All samples are centred
    at the common mean, and classes have equal weights. It depends on the scale of the features. Source: Long-Kai Huang
    et al., "Frustratingly Easy Transferability Estimation", ICML 2022, as in the program printed there.

    Determinants are products of eigenvalues. Those of all samples are part of the spectrum that other metrics share.
    Those of a class are computed from the smaller of Z'Z and ZZ', at the cost of its samples squared times the number
    of features. Eigenvalues within rounding errors count as 0, however large the features are.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        epsilon: The distortion that the code may have.

    Returns:
        The score in nats; 0 for a single class and for constant features.

    Raises:
        ValueError: The distortion is not above 0, or the features or labels do not fit.
    """
    if not (isinstance(epsilon, Real) and epsilon > 0):
        raise ValueError(f"epsilon must be above 0, not {epsilon!r}")
    statistics = statistics_of(features, labels)
    if statistics.classes == 1:
        return 0.0

    whole = coding_rate(statistics.spectrum.eigenvalues, statistics.samples * epsilon)
    classes = 0.0
    for rows in statistics.class_rows:
        x = statistics.centred[rows]
        size, dimensions = x.shape
        eigenvalues = np.linalg.eigvalsh(x.T @ x if dimensions <= size else x @ x.T)
        least = max(size, dimensions) * np.finfo(np.float64).eps * eigenvalues[-1]
        classes += coding_rate(eigenvalues[eigenvalues > least], size * epsilon)
    return whole - classes / statistics.classes


def coding_rate(eigenvalues: Floats, scale: float) -> float:
    """Compute the coding rate of samples in nats.

    Args:
        eigenvalues: Of their Gram matrix, `[r]`.
        scale: Number of samples, times the distortion.
    """
    return float(np.log1p(eigenvalues / scale).sum()) / 2

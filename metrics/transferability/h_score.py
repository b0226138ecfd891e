"""H-score, as published and with the covariance regularised by shrinkage."""

import numpy as np

from headstart.metrics.arrays import Array, Floats
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, Spectrum, statistics_of


def h_score(features: Array | FeatureStatistics, labels: Array | None = None, shrinkage: bool = False) -> float:
    """Compute the H-score `trace(pinv(cov(F)) cov(E[F | y]))`.

    Source: Yajie Bao et al., "An Information-Theoretic Approach to Transferability in Task Transfer Learning", ICIP
    2019, definition 2. It lies in [0, classes - 1]. It is exactly classes - 1 where centred samples have their largest
    possible rank, samples - 1. Linear maps of the features that lose no direction of their spread do not change it.

    With shrinkage, it is `trace(inverse((1 - a) S + a m I) (1 - a) cov(E[F | y]))`, where S is the covariance and m the
    mean of its diagonal (Shibal Ibrahim, Natalia Ponomareva, Rahul Mazumder, "Newer is not always better: Rethinking
    transferability metrics, their peculiarities, stability and performance", 2021). The intensity a is that of Olivier
    Ledoit, Michael Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
    Multivariate Analysis, 2004. Both covariances are divided by the number of samples.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        shrinkage: Whether the covariance is regularised.

    Returns:
        The score; 0 for a single class and for constant features.
    """
    statistics = statistics_of(features, labels)
    if shrinkage:
        return _shrunk(statistics)
    return explained_classes(statistics.spectrum, statistics.counts)


def explained_classes(spectrum: Spectrum, counts: Floats) -> float:
    """Compute the H-score from the spectrum of the centred Gram matrix and the sizes of classes, `[classes, 1]`."""
    rank, most = spectrum.rank, float(len(counts) - 1)
    # Centred samples have at most this rank, at which their coordinates separate all classes.
    if rank >= int(counts.sum()) - 1:
        return most
    score = float((spectrum.class_sums[:, :rank] ** 2 / spectrum.eigenvalues[:rank] / counts).sum())
    return min(score, most)


def _shrunk(statistics: FeatureStatistics) -> float:
    spectrum, samples, features = statistics.spectrum, statistics.samples, statistics.dimensions
    rank = spectrum.rank
    if not rank:
        return 0.0
    variances = spectrum.eigenvalues[:rank] / samples
    mean = float(variances.sum()) / features

    squared = float((variances**2).sum())
    spread = max(squared - features * mean**2, 0.0)
    norms = np.einsum("ij,ij->i", statistics.centred, statistics.centred)
    error = min((float((norms**2).sum()) / samples - squared) / samples, spread)
    intensity = error / spread if error > 0 else 0.0

    between = (spectrum.class_sums[:, :rank] ** 2 / statistics.counts).sum(0) / samples
    score = float(((1 - intensity) * between / ((1 - intensity) * variances + intensity * mean)).sum())
    return min(score, float(statistics.classes - 1))

"""PARC."""

from __future__ import annotations

import numpy as np

from metrics.arrays import Array, check_integer, like, namespace, to_host
from metrics.transferability.feature_statistics import FeatureStatistics

# Pairs, which are ranked, grow with the square of the samples.
PROBES = 2000
# Distances that differ by less differ by rounding errors.
DIGITS = 12


def parc(
    features: Array | FeatureStatistics, labels: Array | None = None, probes: int = PROBES, seed: int = 0
) -> float:
    """Compute PARC, the rank correlation between distances of features and distances of labels over pairs of samples.

    Source: Daniel Bolya, Rohit Mittapalli, Judy Hoffman, "Scalable Diverse Model Selection for Accessible Transfer
    Learning", NeurIPS 2021, section 4: Spearman's correlation of the lower triangles of two matrices of distances, 1
    less Pearson's correlation, over the features of two samples and over their labels as indicators. The latter is 0
    within a class and the same for all pairs of different classes, whatever their number. They multiply by 100, which
    is left out here, and draw a probe set, which is done here where there are more samples than probes. They also
    reduce features to principal components, which is left out: the correlation over components depends on their
    signs, which are arbitrary. Features are not standardised, which their program may do.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        probes: Samples that are compared, at most.
        seed: Of the drawing of probes.

    Returns:
        The score, from -1 to 1; 0 where all distances are the same, as for constant features and for a single class.

    Raises:
        ValueError: An option is out of range, or the features or labels do not fit.
    """
    check_integer("probes", probes, 2)
    check_integer("seed", seed, 0)
    from scipy.spatial.distance import squareform
    from scipy.stats import rankdata

    statistics = FeatureStatistics.of(features, labels)
    rows = statistics.centred + statistics.mean
    codes = statistics.labels
    if statistics.samples > probes:
        drawn = np.sort(np.random.default_rng(seed).choice(statistics.samples, int(probes), replace=False))
        rows, codes = rows[like(drawn, rows)], codes[drawn]
    distances = squareform(np.round(1 - to_host(_correlations(rows)), DIGITS), checks=False)
    different = squareform((codes[:, None] != codes).astype(np.float64), checks=False)
    if len(distances) < 2 or np.ptp(distances) == 0 or np.ptp(different) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(distances), different)[0, 1])


def _correlations(rows: Array) -> Array:
    """Correlate the features of every pair of samples, `[samples, samples]`; 0 where a sample's are all the same."""
    xp = namespace(rows)
    deviations = rows - rows.mean(1)[:, None]
    lengths = xp.sqrt((deviations**2).sum(1))[:, None]
    varies = lengths > 1e-12 * xp.sqrt((rows**2).sum(1))[:, None]
    directions = xp.where(varies, deviations / xp.where(varies, lengths, xp.ones_like(lengths)), xp.zeros_like(rows))
    return directions @ directions.T

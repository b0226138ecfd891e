"""PARC."""

from collections.abc import Callable

import numpy as np

from headstart.metrics.arrays import Array, Flags, Floats, check_integer, like, namespace, to_host
from headstart.metrics.transferability.feature_statistics import FeatureStatistics

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
    is left out here, and sample a probe set, which is done here where there are more samples than probes. They also
    reduce features to principal components, which is left out: the correlation over components depends on their
    signs, which are arbitrary. Features are not standardised, which their program may do.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        probes: Samples that are compared, at most.
        seed: Seed of the probes.

    Returns:
        The score, from -1 to 1; 0 where all distances are the same, as for constant features and for a single class.

    Raises:
        ValueError: An option is out of range, or the features or labels do not fit.
    """
    statistics = FeatureStatistics.of(features, labels)
    return prepare_parc(statistics, probes, seed)(np.ones(statistics.samples, dtype=bool))


def prepare_parc(statistics: FeatureStatistics, probes: int = PROBES, seed: int = 0) -> Callable[[Flags], float]:
    """Compute the distances of PARC once, and return the score of some samples as a function of their mask.

    The mask is `[samples]` in the order of the statistics. Of sampled probes, those within the mask count.

    Args:
        statistics: Of all samples.
        probes: As `parc`.
        seed: As `parc`.
    """
    check_integer("probes", probes, 2)
    check_integer("seed", seed, 0)
    probed = np.arange(statistics.samples)
    if statistics.samples > probes:
        probed = np.sort(np.random.default_rng(seed).choice(statistics.samples, int(probes), replace=False))
    rows = statistics.centred[like(probed, statistics.centred)] + statistics.mean
    distances = np.round(1 - to_host(_correlations(rows)), DIGITS)

    one, other = np.triu_indices(len(probed), 1)
    order = np.argsort(distances[one, other], kind="stable")
    one, other = one[order], other[order]
    ascending = distances[one, other]
    different = statistics.labels[probed[one]] != statistics.labels[probed[other]]

    def score(kept: Flags) -> float:
        pairs = kept[probed[one]] & kept[probed[other]]
        return _rank_correlation(ascending[pairs], different[pairs])

    return score


def _rank_correlation(ascending: Floats, different: Flags) -> float:
    """Correlate the ranks of the ascending distances of pairs with whether their classes differ."""
    if len(ascending) < 2 or ascending[0] == ascending[-1] or different.all() or not different.any():
        return 0.0
    # Equal distances share the mean of their ranks.
    first = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
    equal = np.diff(first, append=len(ascending))
    ranks = np.repeat(first + (equal - 1) / 2, equal)
    return float(np.corrcoef(ranks, different)[0, 1])


def _correlations(rows: Array) -> Array:
    """Correlate the features of every pair of samples, `[samples, samples]`; 0 where a sample's are all the same."""
    xp = namespace(rows)
    deviations = rows - rows.mean(1)[:, None]
    lengths = xp.sqrt((deviations**2).sum(1))[:, None]
    varies = lengths > 1e-12 * xp.sqrt((rows**2).sum(1))[:, None]
    directions = xp.where(varies, deviations / xp.where(varies, lengths, xp.ones_like(lengths)), xp.zeros_like(rows))
    return directions @ directions.T

"""PARC."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Flags, Floats, check_choice, check_integer
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, Variant, statistics_of

# Pairs, which are ranked, grow with the square of the samples.
PROBES = 2000
# Smaller differences of distances are rounding errors.
DIGITS = 12
# Features whose standard deviation is a smaller share of the largest one vary by rounding errors alone.
LEAST_SPREAD = 1e-12


def parc(
    features: Array | FeatureStatistics,
    labels: Array | None = None,
    probes: int = PROBES,
    seed: int = 0,
    variant: Variant = "published",
    components: int | None = None,
) -> float:
    """Compute PARC, the rank correlation between distances of features and distances of labels over pairs of samples.

    Source: Daniel Bolya, Rohit Mittapalli, Judy Hoffman, "Scalable Diverse Model Selection for Accessible Transfer
    Learning", NeurIPS 2021, section 4. PARC is Spearman's correlation of the lower triangles of two matrices of
    distances. A distance is 1 less Pearson's correlation: over the features of two samples, or over their labels as
    indicators. The latter is 0 within a class and the same for all pairs of different classes, whatever their number.
    The factor of 100 of the paper is left out. A probe set is sampled where there are more samples than probes. That is
    `published`. The program released with it computed the published scores: `released`. It standardises the features,
    and does not round the distances of the labels, which NumPy computes. Pairs of different classes have equal
    distances, so they are ranked by their rounding errors. These depend on the number of classes, their order, the
    order of the samples, and the processor. There are none with 2, 4 or 8 classes.

    Before that, features can be reduced to principal components. The program does this on request; its copy in the
    program of SFDA always does, to 32 components. The correlation over components depends on their signs, which are
    arbitrary. Here the largest loading of each is positive, as in scikit-learn since 1.5, and the components are exact.
    Those of the programs are approximations, which depend on the order of the samples.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        probes: Samples that are compared, at most.
        seed: Seed of the probes.
        variant: `published` or `released`.
        components: How many principal components the features are reduced to, at most; None keeps the features.

    Returns:
        The score, from -1 to 1; 0 where all distances are the same, as for constant features and for a single class.

    Raises:
        ValueError: An option is out of range, or the features or labels do not fit.
    """
    statistics = statistics_of(features, labels)
    return prepare_parc(statistics, probes, seed, variant, components)(np.ones(statistics.samples, dtype=bool))


def prepare_parc(
    statistics: FeatureStatistics,
    probes: int = PROBES,
    seed: int = 0,
    variant: Variant = "published",
    components: int | None = None,
) -> Callable[[Flags], float]:
    """Compute the distances of PARC once, and return the score of some samples as a function of their mask.

    The mask is `[samples]` in the order of the statistics. Of sampled probes, those within the mask count. Standard
    deviations and components are those of all samples.

    Args:
        statistics: Of all samples.
        probes: As `parc`.
        seed: As `parc`.
        variant: As `parc`.
        components: As `parc`.
    """
    check_choice("variant", variant, Variant)
    if components is not None:
        check_integer("components", components, 2)
    check_integer("probes", probes, 2)
    check_integer("seed", seed, 0)
    probed = np.arange(statistics.samples)
    if statistics.samples > probes:
        probed = np.random.default_rng(seed).choice(statistics.samples, int(probes), replace=False)
    probed = probed[np.argsort(statistics.order[probed])]
    if variant != "released" and components is None:
        rows = statistics.centred[probed] + statistics.mean
    else:
        compared = statistics.centred if components is None else _oriented_components(statistics, components)
        compared = _standardised(compared) if variant == "released" else compared
        rows = compared[probed]
    distances = np.round(1 - _correlations(rows), DIGITS)

    one, other = np.triu_indices(len(probed), 1)
    order = np.argsort(distances[one, other], kind="stable")
    one, other = one[order], other[order]
    ascending = distances[one, other]
    labels = statistics.labels[probed]
    levels = _label_distance_levels(statistics.classes, variant)[labels[one], labels[other]]

    def score(kept: Flags) -> float:
        pairs = kept[probed[one]] & kept[probed[other]]
        return _rank_correlation(ascending[pairs], levels[pairs])

    return score


def _oriented_components(statistics: FeatureStatistics, count: int) -> Floats:
    """Return the first principal components, `[samples, components]`, the largest loading of each above 0."""
    components = statistics.principal_components(max(1, min(count, statistics.spectrum.rank)))
    loadings = statistics.centred.T @ components
    signs = np.where(np.amax(loadings, 0) >= -np.amin(loadings, 0), 1.0, -1.0)
    return components * signs


def _standardised(rows: Floats) -> Floats:
    """Divide centred rows by their standard deviations; features that are the same for all samples are 0."""
    deviations = np.sqrt((rows**2).mean(0))
    varies = deviations > LEAST_SPREAD * deviations.max()
    return np.where(varies, rows / np.where(varies, deviations, np.ones_like(deviations)), np.zeros_like(rows))


def _label_distance_levels(classes: int, variant: Variant) -> NDArray[np.int64]:
    """Return the distances of labels as integers in the same order, from 0, `[classes, classes]`."""
    distances: Floats = 1 - np.eye(classes)
    if variant == "released" and classes > 1:
        distances = np.asarray(1 - np.corrcoef(np.eye(classes)))
    _, levels = np.unique(distances, return_inverse=True)
    return np.asarray(levels, dtype=np.int64).reshape(classes, classes)


def _rank_correlation(ascending: Floats, levels: NDArray[np.int64]) -> float:
    """Correlate the ranks of the ascending distances of pairs with those of the levels of their labels' distances."""
    if len(ascending) < 2 or ascending[0] == ascending[-1] or (levels == levels[0]).all():
        return 0.0
    # Equal distances share the mean of their ranks.
    first = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
    equal = np.diff(first, append=len(ascending))
    ranks = np.repeat(first + (equal - 1) / 2, equal)
    counts = np.bincount(levels)
    label_ranks = np.cumsum(counts) - (counts + 1) / 2
    return float(np.corrcoef(ranks, label_ranks[levels])[0, 1])


def _correlations(rows: Floats) -> Floats:
    """Correlate the features of every pair of samples, `[samples, samples]`; 0 where a sample's are all the same."""
    deviations = rows - rows.mean(1)[:, None]
    lengths = np.sqrt((deviations**2).sum(1))[:, None]
    varies = lengths > 1e-12 * np.sqrt((rows**2).sum(1))[:, None]
    directions = np.where(varies, deviations / np.where(varies, lengths, np.ones_like(lengths)), np.zeros_like(rows))
    return directions @ directions.T

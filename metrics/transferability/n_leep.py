"""N-LEEP."""

from collections.abc import Callable
from numbers import Real

import numpy as np

from headstart.metrics.arrays import Array, Flags, Floats, check_integer
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of
from headstart.metrics.transferability.gaussian_mixture import fit_mixture
from headstart.metrics.transferability.leep import expected_log_prediction


def n_leep(
    features: Array | FeatureStatistics,
    labels: Array | None = None,
    pca: float = 0.8,
    components_per_class: int = 5,
    fits: int = 8,
    seed: int = 0,
) -> float:
    """Compute N-LEEP: LEEP with the components of a mixture of Gaussians in place of the source classes.

    Source: Yandong Li et al., "Ranking Neural Checkpoints", CVPR 2021, section 3.3. A mixture with full covariances is
    fitted to principal components, and its responsibilities are the probabilities. No source head is needed. The
    published score is of one fit. The likelihood has many maxima, and the score depends on the one that a fit finds.
    The mean over fits from several random starts depends on it less.

    Memory: a covariance per component, `5 classes * axes^2` numbers, and `fits * samples * 5 classes` responsibilities.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        pca: Share of the variance that the principal components must exceed, above 0 and at most 1.
        components_per_class: Gaussians per target class.
        fits: Fits of the mixture, each from a start of its own; the score is the mean of theirs.
        seed: Seed of the starts; the first ones do not depend on the number of fits.

    Returns:
        The score, at most 0; 0 for a single class, minus the entropy of the labels for constant features.

    Raises:
        ValueError: There are fewer samples than Gaussians, an option is out of range, or the features or labels
            do not fit.
    """
    statistics = statistics_of(features, labels)
    score = prepare_n_leep(statistics, pca, components_per_class, fits, seed)
    return float(score(np.ones(statistics.samples, dtype=bool)).mean())


def prepare_n_leep(
    statistics: FeatureStatistics, pca: float = 0.8, components_per_class: int = 5, fits: int = 8, seed: int = 0
) -> Callable[[Flags], Floats]:
    """Fit the mixtures of N-LEEP, and return the scores of some of the samples, `[fits]`, as a function of their mask.

    The mask is `[samples]` in the order of the statistics. The mixtures are not fitted again to these samples. New fits
    would end in other optima, whose scores differ by more than those of other samples do.

    Args:
        statistics: Of all samples.
        pca: As `n_leep`, and so are the others.
        components_per_class: As `n_leep`.
        fits: As `n_leep`.
        seed: As `n_leep`.
    """
    if not (isinstance(pca, Real) and 0 < pca <= 1):
        raise ValueError(f"pca must be above 0 and at most 1, not {pca!r}")
    check_integer("components_per_class", components_per_class, 1)
    check_integer("fits", fits, 1)
    check_integer("seed", seed, 0)
    components = components_per_class * statistics.classes
    if components > statistics.samples:
        raise ValueError(
            f"components_per_class: {components_per_class} for each of {statistics.classes} classes need as many "
            f"samples, but features have {statistics.samples} rows"
        )

    rank = statistics.spectrum.rank
    variances = statistics.spectrum.eigenvalues
    shares = np.cumsum(variances) / max(variances.sum(), np.finfo(np.float64).tiny)
    axes = min(int(np.searchsorted(shares, pca, side="right")) + 1, rank)
    # Without any spread, all samples are one component.
    rows = statistics.principal_components(axes) if axes else statistics.centred[:, :1]
    starts = np.random.SeedSequence(seed).spawn(fits)
    responsibilities = [fit_mixture(rows, components, start)[0] for start in starts]

    def score(kept: Flags) -> Floats:
        indices, sizes = np.flatnonzero(kept), np.bincount(statistics.labels[kept])
        return np.array([expected_log_prediction(probabilities[indices], sizes) for probabilities in responsibilities])

    return score

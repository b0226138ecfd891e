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
    published score comes from a single fit. But the likelihood has many local maxima, and scores at them differ. So
    this score is the mean over fits from several random starts.

    Memory: the covariances, `5 * classes * principal_components^2` numbers, and `fits * samples * 5 * classes`
    responsibilities.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        pca: Share of the variance that the principal components must exceed, above 0 and at most 1.
        components_per_class: Gaussians per target class.
        fits: Number of fits, each from another random start. The score is the mean of their scores.
        seed: Seed of the starts. The first starts are the same for any number of fits.

    Returns:
        The score, at most 0. It is 0 for a single class, and the negative entropy of the labels for constant features.

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
    """Fit the mixtures of N-LEEP to all samples, and return a function that scores a subset of the samples.

    The function takes a mask, `[samples]` in the order of the statistics, and returns a score per fit, `[fits]`. It
    does not fit the mixtures to the subset. New fits would find other local maxima, which changes a score more than
    the choice of the samples does.

    Args:
        statistics: Statistics of all samples.
        pca: As `n_leep`.
        components_per_class: As `n_leep`.
        fits: As `n_leep`.
        seed: As `n_leep`.
    """
    if not (isinstance(pca, Real) and 0 < pca <= 1):
        raise ValueError(f"pca must be above 0 and at most 1, not {pca!r}")
    check_integer("components_per_class", components_per_class, 1)
    check_integer("fits", fits, 1)
    check_integer("seed", seed, 0)
    gaussians = components_per_class * statistics.classes
    if gaussians > statistics.samples:
        raise ValueError(
            f"components_per_class: {components_per_class} for each of {statistics.classes} classes need as many "
            f"samples, but features have {statistics.samples} rows"
        )

    rank = statistics.spectrum.rank
    variances = statistics.spectrum.eigenvalues
    shares = np.cumsum(variances) / max(variances.sum(), np.finfo(np.float64).tiny)
    kept_components = min(int(np.searchsorted(shares, pca, side="right")) + 1, rank)
    # Constant features have no principal component; a column of zeros gives all samples equal responsibilities.
    rows = statistics.principal_components(kept_components) if kept_components else statistics.centred[:, :1]
    starts = np.random.SeedSequence(seed).spawn(fits)
    responsibilities = [fit_mixture(rows, gaussians, start)[0] for start in starts]

    def score(kept: Flags) -> Floats:
        indices, sizes = np.flatnonzero(kept), np.bincount(statistics.labels[kept])
        return np.array([expected_log_prediction(probabilities[indices], sizes) for probabilities in responsibilities])

    return score

"""Linear discriminants with a regularised covariance within the classes, by which several metrics judge features."""

import math

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.transferability.feature_statistics import FeatureStatistics

# The released program of SFDA: the rate at which shrinkage falls with the spread within classes, and its minimum.
RATE, LEAST_SHRINKAGE = 5.0, 1e-10


def all_components(statistics: FeatureStatistics) -> Floats:
    """Return the features along the axes of their spread, `[samples, rank]`; discriminants do not change."""
    rank = statistics.spectrum.rank
    return statistics.principal_components(rank) if rank else statistics.centred[:, :1]


def rows_and_axes(statistics: FeatureStatistics) -> tuple[Floats, Floats | None]:
    """Return rows and axes for `class_probabilities` by all features, without a rotation of all samples if possible.

    Rotating all samples takes twice the products of a covariance. Only the parts that discriminants need are rotated
    instead.
    """
    rank = statistics.spectrum.rank
    if not rank or statistics.dimensions > statistics.samples:
        return all_components(statistics), None
    return statistics.centred, statistics.spectrum.vectors[:, :rank]


def class_probabilities(
    rows: Floats,
    statistics: FeatureStatistics,
    dimensions: int,
    shrinkage: float | None = None,
    axes: Floats | None = None,
) -> tuple[Floats, float]:
    """Fit regularised linear discriminants to rows, and return the probabilities of the classes of the same rows.

    Each class is a Gaussian with its own mean, its share as prior, and the common covariance `(1 - a) W + a m I`. W is
    the mean over samples of the outer products of deviations from the class means. The mean variance m is its trace,
    divided by the number of dimensions. By default the shrinkage a is `exp(-5 s)`, at least 1e-10, where s is the
    largest eigenvalue of W.

    Source: Wenqi Shao et al., "Not All Models Are Equal: Predicting Model Transferability in a Self-challenging Fisher
    Space", ECCV 2022, section 3. Their projection on all axes of the generalised eigenproblem whitens by that
    covariance. The text has 1 in place of m; m and the constants are those of the program released with it.

    Args:
        rows: `[samples, axes]`, in the order of the statistics.
        statistics: Of the classes of the rows.
        dimensions: Of the features, which may have more axes than those along which the rows differ.
        shrinkage: From 0 to 1.
        axes: Orthonormal directions `[features, axes]` that the discriminants are in, where the rows are
            `[samples, features]`; by default all.

    Returns:
        Probabilities `[samples, classes]`, and the shrinkage.
    """
    means, covariance = _means_and_covariance(rows, statistics)
    if axes is not None:
        means, covariance = means @ axes, axes.T @ covariance @ axes
    if shrinkage is None:
        shrinkage = max(math.exp(-RATE * max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0)), LEAST_SHRINKAGE)
    weights = np.linalg.solve(_shrunk(covariance, shrinkage, dimensions), means.T)
    halves = (means.T * weights).sum(0) / 2
    return _probabilities(rows @ (weights if axes is None else axes @ weights), halves, statistics), shrinkage


def nearest_mean_probabilities(statistics: FeatureStatistics) -> Floats:
    """Compute the probabilities of Gaussian classes of unit variance along every feature, `[samples, classes]`.

    As for `class_probabilities`, with the identity in place of the covariance.
    """
    means = statistics.class_means
    return _probabilities(statistics.centred @ means.T, (means**2).sum(1) / 2, statistics)


def _probabilities(products: Floats, halves: Floats, statistics: FeatureStatistics) -> Floats:
    """Compute probabilities from products of the rows with the weights, and half of those of the means, `[classes]`."""
    products += np.log(statistics.counts[:, 0] / statistics.samples) - halves
    return softmax(products)


def along_discriminants(rows: Floats, statistics: FeatureStatistics, shrinkage: float) -> Floats:
    """Project centred rows onto the axes that separate the classes best, of unit variance within classes.

    Args:
        rows: `[samples, axes]`, of mean 0, in the order of the statistics.
        statistics: Of the classes of the rows.
        shrinkage: As for `class_probabilities`, where the dimensions are the axes.

    Returns:
        `[samples, min(classes - 1, axes)]`.
    """
    _, covariance = _means_and_covariance(rows, statistics)
    factor = np.linalg.cholesky(_shrunk(covariance, shrinkage, rows.shape[1]))
    white = np.linalg.solve(factor, rows.T).T
    means = statistics.class_sums(white) / statistics.counts
    _, _, axes = np.linalg.svd(np.sqrt(statistics.counts) * means, full_matrices=False)
    return np.asarray(white @ axes[: statistics.classes - 1].T)


def _means_and_covariance(rows: Floats, statistics: FeatureStatistics) -> tuple[Floats, Floats]:
    """Compute the means of classes `[classes, axes]`, and the covariance within classes, `[axes, axes]`."""
    means, deviations = statistics.class_moments(rows)
    return means, deviations.T @ deviations / statistics.samples


def _shrunk(covariance: Floats, shrinkage: float, dimensions: int) -> Floats:
    """Mix a covariance with its mean variance in all directions; with 1 where it is 0."""
    spread = float(covariance.diagonal().sum()) / dimensions or 1.0
    return (1 - shrinkage) * covariance + shrinkage * spread * np.eye(len(covariance))


def softmax(scores: Floats) -> Floats:
    """Compute the softmax over classes in place of the scores, `[samples, classes]`."""
    scores -= np.amax(scores, 1)[:, None]
    np.exp(scores, out=scores)
    scores /= scores.sum(1)[:, None]
    return scores


def of_own_class(values: Floats, statistics: FeatureStatistics) -> Floats:
    """Return the value of each sample's class, `[samples]`, from values `[samples, classes]`."""
    return values[np.arange(statistics.samples), statistics.labels]

"""Metrics computed for all targets together, where targets are made of classes of one data set."""

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.transferability.feature_statistics import sum_by_class
from headstart.metrics.transferability.gbc import PRINCIPAL_COMPONENTS, class_overlaps
from headstart.metrics.transferability.inputs import Inputs, Pool, TargetStatistics
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.trans_rate import EPSILON, coding_rate


def gbc_of_targets(pool: Pool, pca: int | None = PRINCIPAL_COMPONENTS) -> Floats:
    """Compute the spherical GBC of every target, `[targets]`, see `headstart.metrics.transferability.gbc.gbc`.

    The overlap of two classes depends on these alone. All overlaps are therefore computed once, and a target adds up
    its own. The principal components are those of the whole data set. In each target's own components, the overlap of
    two classes would change from target to target. A pca of None keeps the features: the GBC of every target is then
    exact.
    """
    dataset = pool.dataset
    if pca is None:
        means, variances = dataset.means, sum_by_class(dataset.within**2, dataset.sizes) / dataset.sizes[:, None]
    else:
        whole = TargetStatistics(dataset, np.arange(dataset.classes))
        means, deviations = whole.class_moments(whole.principal_components(pca))
        variances = sum_by_class(deviations**2, dataset.sizes) / whole.counts
    overlaps = class_overlaps(means, variances, "spherical", "textbook")
    return np.array([0.0 - overlaps[np.ix_(chosen, chosen)].sum() for chosen in pool.targets])


def leep_of_targets(pool: Pool) -> Floats:
    """Compute LEEP of every target, `[targets]`, see `headstart.metrics.transferability.leep.leep`.

    The sums of probabilities over each class are gathered once; one pass over the rows then serves all targets.

    Raises:
        ValueError: There is no source head, or these are no probabilities.
    """
    dataset, holds, probabilities = pool.dataset, pool.holds, pool.probabilities
    leep(probabilities, pool.labels)  # checks the rows
    joint = sum_by_class(probabilities[dataset.order], dataset.sizes)
    marginal = holds @ joint

    totals = np.zeros(len(holds))
    for label, rows in enumerate(dataset.rows):
        targets = np.flatnonzero(holds[:, label])
        if len(targets):
            shares = joint[label] / np.where(marginal[targets] > 0, marginal[targets], 1)
            totals[targets] += np.log(probabilities[dataset.order[rows]] @ shares.T).sum(0)

    totals[holds.sum(1) == 1] = 0
    return np.minimum(totals / (holds @ dataset.sizes), 0)


def nce_of_targets(pool: Pool) -> Floats:
    """Compute NCE of every target with the most likely source classes, see `headstart.metrics.nce`.

    The joint counts of classes and source classes are computed once.

    Args:
        pool: The targets.

    Returns:
        `[targets]`.

    Raises:
        ValueError: There is no source head.
    """
    from scipy.special import xlogy

    dataset, holds, probabilities = pool.dataset, pool.holds, pool.probabilities
    predicted = probabilities.argmax(1)[dataset.order]
    joint = np.stack([np.bincount(predicted[rows], minlength=probabilities.shape[1]) for rows in dataset.rows])
    marginal = holds @ joint
    entropies: Floats = xlogy(marginal, marginal).sum(1) - holds @ xlogy(joint, joint).sum(1)
    return 0 - np.maximum(entropies / (holds @ dataset.sizes), 0)


def coding_rate_of_samples(inputs: Inputs) -> float:
    """Compute the coding rate of all samples of a target, the first term of TransRate, in nats."""
    statistics = inputs.statistics
    return coding_rate(statistics.spectrum.eigenvalues, statistics.samples * EPSILON)


def coding_rates_of_classes(pool: Pool) -> Floats:
    """Compute the mean coding rate of the classes of every target, the second term of TransRate, in nats, `[targets]`.

    A class is centred at its target's mean, which adds a matrix of rank one to its own covariance. With `d` the
    difference of the means and `A = I + C / epsilon`, the determinant is `det(A) (1 + d' inverse(A) d / epsilon)`. One
    decomposition of each class therefore serves all targets.
    """
    dataset, holds = pool.dataset, pool.holds
    centres = np.stack([TargetStatistics(dataset, chosen).mean for chosen in pool.targets])
    totals = np.zeros(len(holds))
    for label, rows in enumerate(dataset.rows):
        targets = np.flatnonzero(holds[:, label])
        if len(targets):
            totals[targets] += _coding_rates(dataset.within[rows], dataset.means[label] - centres[targets])
    return np.asarray(totals / holds.sum(1))


def _coding_rates(x: Floats, shifts: Floats) -> Floats:
    """Compute the coding rates of the rows `x + shift`, with x centred `[size, features]`, `[shifts]`."""
    size, dimensions = x.shape
    eigenvalues, vectors = np.linalg.eigh(x.T @ x if dimensions <= size else x @ x.T)
    positive = eigenvalues > max(size, dimensions) * np.finfo(np.float64).eps * eigenvalues[-1]
    eigenvalues, vectors = eigenvalues[positive], vectors[:, positive]

    scaled = eigenvalues / (size * EPSILON)
    axes = vectors if dimensions <= size else x.T @ (vectors / np.sqrt(eigenvalues))
    squares = (shifts @ axes) ** 2
    beyond = np.maximum((shifts**2).sum(1) - squares.sum(1), 0)
    return np.asarray((np.log1p(scaled).sum() + np.log1p(((squares / (1 + scaled)).sum(1) + beyond) / EPSILON)) / 2)

"""Mixture of Gaussians with full covariances, fitted by expectation maximisation that skips negligible densities."""

import math
from dataclasses import dataclass

import numpy as np

from headstart.metrics.arrays import Floats, Indices

# The conventions of scikit-learn's GaussianMixture, with which the published N-LEEP scores were computed.
REGULARISATION = 1e-6
TOLERANCE = 1e-3
ITERATIONS = 100
# A density below exp(-40) of another's changes a responsibility by less than its rounding error.
NEGLIGIBLE = 40.0
# Whitened coordinates that bound a density, and how many of them are in memory at the same time.
BOUND_COORDINATES = 8
BLOCK = 2**22


@dataclass(frozen=True)
class _Components:
    """Gaussians as logarithms of their peak densities, times their weights, `[components]`, means, and whitening."""

    peaks: Floats
    means: Floats
    whitening: Floats

    def log_density(self, component: int, rows: Floats) -> Floats:
        """Compute the log of weight times density of one component, `[rows]`."""
        whitened = (rows - self.means[component]) @ self.whitening[component].T
        return np.asarray(self.peaks[component] - (whitened**2).sum(1) / 2)


def fit_mixture(rows: Floats, components: int, seed: int | np.random.SeedSequence) -> tuple[Floats, float]:
    """Fit a mixture of Gaussians with full covariances.

    It starts from k-means and adds 1e-6 to the variances. It stops when the mean log likelihood changes by less than
    1e-3, or after 100 iterations. These are the conventions of scikit-learn's `GaussianMixture` (F. Pedregosa et al.,
    "Scikit-learn: Machine Learning in Python", Journal of Machine Learning Research, 2011).

    The densities of all components at all samples, and the covariances, dominate the time of a fit. A few whitened
    coordinates of a sample bound its density under a component from above. Compare the bound with the density of the
    component with the best bound. If it is below exp(-40) times that density, the density is skipped, and the
    covariance skips the sample.

    Args:
        rows: `[samples, features]`.
        components: Number of Gaussians, at most that of samples.
        seed: Seed of the starting points of k-means.

    Returns:
        Probability of every component given the sample, `[samples, components]`, and the mean over samples, in nats, of
        the log density.
    """
    labels = k_means(rows, components, seed)
    responsibilities = (labels[:, None] == np.arange(components)) * np.ones_like(rows[:, :1])
    # Beyond variances of 1e7, 1e-6 would drown in rounding.
    regularisation = max(REGULARISATION, 1e-13 * float((rows**2).mean(0).max()))

    mixture = _maximise(rows, responsibilities, regularisation)
    previous = -math.inf
    for _ in range(ITERATIONS):
        responsibilities, likelihood = _expect(rows, mixture)
        mixture = _maximise(rows, responsibilities, regularisation)
        if abs(likelihood - previous) < TOLERANCE:
            break
        previous = likelihood
    return _expect(rows, mixture)


def _expect(rows: Floats, mixture: _Components) -> tuple[Floats, float]:
    """Compute responsibilities, and the mean log likelihood."""
    bounds = _bounds(rows, mixture)
    best = bounds.argmax(1)
    densities = np.full_like(bounds, -math.inf)
    reached = np.zeros_like(rows[:, 0])
    for component in range(len(mixture.means)):
        members = best == component
        reached[members] = mixture.log_density(component, rows[members])

    counts = bounds >= reached[:, None] - NEGLIGIBLE
    for component in range(len(mixture.means)):
        members = counts[:, component]
        densities[members, component] = mixture.log_density(component, rows[members])

    highest = np.amax(densities, 1)[:, None]
    shares = np.exp(densities - highest)
    sums = shares.sum(1)[:, None]
    return shares / sums, float((highest + np.log(sums)).mean())


def _bounds(rows: Floats, mixture: _Components) -> Floats:
    """Bound the log densities from above, by the last whitened coordinates, `[samples, components]`."""
    components, features = mixture.means.shape
    used = min(BOUND_COORDINATES, features)
    axes = mixture.whitening[:, -used:]
    offsets = np.einsum("kbf,kf->kb", axes, mixture.means)
    flat = axes.reshape(components * used, features).T
    parts = []
    step = max(1, BLOCK // (components * used))
    for start in range(0, len(rows), step):
        whitened = (rows[start : start + step] @ flat).reshape(-1, components, used) - offsets
        parts.append(mixture.peaks - np.einsum("nkb,nkb->nk", whitened, whitened) / 2)
    return np.concatenate(parts)


def _maximise(rows: Floats, responsibilities: Floats, regularisation: float) -> _Components:
    """Fit every component to the samples, weighted by its responsibilities."""
    features, components = rows.shape[1], responsibilities.shape[1]
    # A component without samples keeps a positive weight.
    sizes = responsibilities.sum(0) + 10 * np.finfo(np.float64).eps
    means = responsibilities.T @ rows / sizes[:, None]
    covariances = np.zeros((components, features, features), dtype=rows.dtype)
    for component in range(components):
        members = responsibilities[:, component] > 0
        deviations = rows[members] - means[component]
        deviations *= np.sqrt(responsibilities[members, component] / sizes[component])[:, None]
        covariances[component] = deviations.T @ deviations

    diagonal = np.arange(features)
    covariances[:, diagonal, diagonal] += regularisation
    whitening = np.linalg.inv(np.linalg.cholesky(covariances))
    determinants = np.log(whitening[:, diagonal, diagonal]).sum(1)
    peaks = np.log(sizes / sizes.sum()) + determinants - features / 2 * math.log(2 * math.pi)
    return _Components(peaks, means, whitening)


def k_means(rows: Floats, clusters: int, seed: int | np.random.SeedSequence) -> Indices:
    """Cluster rows `[samples, features]` by Lloyd's algorithm until no row changes its cluster, at most 100 times.

    Args:
        rows: The rows.
        clusters: Number of clusters, at most that of samples; some may end without rows where rows are equal.
        seed: Seed of the starting points.

    Returns:
        The cluster of each row, `[samples]`.
    """
    centres = _spread_out(rows, clusters, np.random.default_rng(seed))
    labels = _nearest(rows, centres)
    for _ in range(ITERATIONS):
        members = (labels[:, None] == np.arange(clusters)) * np.ones_like(rows[:, :1])
        sizes = members.sum(0)[:, None]
        centres = np.where(sizes > 0, members.T @ rows / np.clip(sizes, 1, None), centres)
        moved = _nearest(rows, centres)
        if bool((moved == labels).all()):
            break
        labels = moved
    return labels


def _nearest(rows: Floats, centres: Floats) -> Indices:
    return np.asarray(((centres**2).sum(1) - 2 * (rows @ centres.T)).argmin(1))


def _spread_out(rows: Floats, clusters: int, generator: np.random.Generator) -> Floats:
    """Choose starting points far from one another, each as the best of a few sampled ones.

    Source: David Arthur, Sergei Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007, in the greedy
    form that its section 6 mentions.
    """
    norms = (rows**2).sum(1)
    trials = 2 + int(math.log(clusters))
    first = int(generator.integers(len(rows)))
    centres, nearest = [first], np.clip(norms + norms[first] - 2 * (rows @ rows[first]), 0, None)

    while len(centres) < clusters:
        steps = np.cumsum(nearest, 0)
        sampled = generator.random(trials) * steps[-1]
        indices = np.clip(np.searchsorted(steps, sampled), 0, len(rows) - 1)
        distances = norms[:, None] + norms[indices] - 2 * (rows @ rows[indices].T)
        distances = np.minimum(np.clip(distances, 0, None), nearest[:, None])
        best = int(distances.sum(0).argmin())
        centres.append(int(indices[best]))
        nearest = distances[:, best]
    return rows[centres]

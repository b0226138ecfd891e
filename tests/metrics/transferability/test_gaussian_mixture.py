"""The mixture and k-means against scikit-learn from the same start."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from headstart.metrics.transferability.gaussian_mixture import fit_mixture, k_means
from headstart.tests.material.metric_formulas import mixture


def sample(samples: int, features: int, clusters: int, spread: float, seed: int = 0) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((clusters, features))
    rows = centres[generator.integers(0, clusters, samples)] + spread * generator.standard_normal((samples, features))
    return np.asarray(rows)


def test_as_scikit_learn_from_the_same_start() -> None:
    for samples, features, clusters, spread in ((400, 2, 4, 1.0), (500, 12, 10, 0.8), (300, 30, 12, 0.5)):
        rows = sample(samples, features, clusters, spread)
        fitted, expected = fit_mixture(rows, clusters, 0), mixture(rows, clusters, 0)
        assert fitted[1] == pytest.approx(expected.score(rows), abs=1e-7)
        np.testing.assert_allclose(fitted[0], expected.predict_proba(rows), atol=1e-6)


def test_separated_clusters_are_found() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 3
    rows = 100 * np.eye(3)[labels] + generator.standard_normal((300, 3))
    responsibilities = fit_mixture(rows, 3, 0)[0]
    clusters = responsibilities.argmax(1)
    assert len({(a, b) for a, b in zip(labels.tolist(), clusters.tolist(), strict=True)}) == 3
    np.testing.assert_allclose(responsibilities.max(1), 1)
    # One Gaussian has its likelihood in closed form.
    covariance = np.cov(rows, rowvar=False, ddof=0) + 1e-6 * np.eye(3)
    expected = -0.5 * np.linalg.slogdet(2 * math.pi * covariance)[1] - 1.5
    assert fit_mixture(rows, 1, 0)[1] == pytest.approx(expected, abs=1e-5)


def test_large_features_are_fitted() -> None:
    rows = sample(200, 8, 4, 0.3)
    small, large = fit_mixture(rows, 4, 0), fit_mixture(1e9 * rows, 4, 0)
    np.testing.assert_allclose(large[0], small[0], atol=1e-3)


def test_k_means_is_as_good_as_scikit_learn() -> None:
    rows = sample(600, 10, 20, 0.6)

    def inertia(labels: NDArray[np.int64]) -> float:
        return float(sum(((part - part.mean(0)) ** 2).sum() for k in range(20) if len(part := rows[labels == k])))

    ours = np.mean([inertia(k_means(rows, 20, seed)) for seed in range(5)])
    theirs = np.mean([KMeans(20, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(5)])
    assert ours < 1.05 * theirs

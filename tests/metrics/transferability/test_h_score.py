"""H-score against its formula with NumPy's covariances, scikit-learn's shrinkage, and its bounds."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf

from headstart.metrics.transferability.h_score import h_score


def sample(samples: int, features: int, classes: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) % classes)
    return generator.standard_normal((samples, features)) + 3 * generator.standard_normal((classes, features))[
        labels
    ], labels


def class_means(features: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Replace every sample by the mean of its class."""
    return np.stack([features[labels == label].mean(0) for label in labels])


def written_out(features: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    covariance = np.cov(features, rowvar=False)
    return float(
        np.trace(np.linalg.pinv(covariance, rcond=1e-10) @ np.cov(class_means(features, labels), rowvar=False))
    )


@pytest.mark.parametrize(("samples", "features", "classes"), [(50, 6, 4), (20, 40, 3), (12, 12, 2), (6, 5, 6)])
def test_as_the_formula(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    score = h_score(x, labels)
    assert score == pytest.approx(written_out(x, labels), rel=1e-8)
    assert 0 <= score <= classes - 1 + 1e-9


def test_with_fewer_samples_than_features_every_class_is_explained() -> None:
    x, labels = sample(20, 100, 4)
    # The scores are equal to the last digit, so that such sources tie.
    assert all(h_score(sample(20, 100, 4, seed)[0], labels) == 3 for seed in range(20))
    assert h_score(x[:, :19], labels) == 3 > h_score(x[:, :18], labels)
    assert h_score(x, labels, shrinkage=True) < 2.99


@pytest.mark.parametrize(("samples", "features", "classes"), [(60, 8, 4), (20, 50, 3), (30, 30, 2)])
def test_shrinkage_as_with_the_ledoit_wolf_estimator(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    estimate = LedoitWolf().fit(x)
    between = np.cov(class_means(x, labels), rowvar=False, ddof=0)
    expected = np.trace(np.linalg.inv(estimate.covariance_) @ between) * (1 - estimate.shrinkage_)
    assert 0 < estimate.shrinkage_ < 1
    assert h_score(x, labels, shrinkage=True) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shrinkage", [False, True])
def test_without_spread_or_without_classes_it_is_0(shrinkage: bool) -> None:
    labels = np.arange(12) % 3
    assert h_score(np.full((12, 4), 0.1), labels, shrinkage) == 0
    assert h_score(
        np.random.default_rng(0).standard_normal((12, 4)), np.zeros(12, dtype=int), shrinkage
    ) == pytest.approx(0, abs=1e-12)
    assert h_score(np.ones((1, 3)), np.array([4]), shrinkage) == 0


def test_classes_with_one_sample() -> None:
    x, labels = sample(40, 5, 3)
    labels[:2] = 3, 4
    assert h_score(x, labels) == pytest.approx(written_out(x, labels), rel=1e-9)
    # Every sample a class of its own: the means are the samples.
    assert h_score(x, np.arange(40)) == pytest.approx(5, abs=1e-9)

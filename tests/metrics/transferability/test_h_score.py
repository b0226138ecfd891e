"""H-score against its formula with NumPy's covariances, scikit-learn's shrinkage, and its bounds."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
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


@pytest.mark.parametrize(
    ("samples", "features", "classes"), [(50, 6, 4), (200, 30, 10), (20, 40, 3), (12, 12, 2), (6, 5, 6)]
)
def test_as_the_formula(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    score = h_score(x, labels)
    assert score == pytest.approx(written_out(x, labels), rel=1e-8)
    assert 0 <= score <= classes - 1 + 1e-9


def test_as_the_generalised_eigenvalues_of_discriminant_analysis() -> None:
    x, labels = sample(200, 10, 5)
    within = x - class_means(x, labels)
    between = class_means(x, labels) - x.mean(0)
    ratios = eigh(between.T @ between, within.T @ within, eigvals_only=True)
    assert h_score(x, labels) == pytest.approx((ratios / (1 + ratios)).sum(), rel=1e-10)


def test_linear_maps_and_shifts_leave_it() -> None:
    x, labels = sample(80, 6, 4)
    mapped = x @ np.random.default_rng(1).standard_normal((6, 6)) + 5
    assert h_score(mapped, labels) == pytest.approx(h_score(x, labels), rel=1e-9)
    assert h_score(np.hstack([x, x[:, :3], np.full((80, 2), 0.1)]), labels) == pytest.approx(h_score(x, labels))


def test_separated_classes_reach_the_bound_and_shuffled_labels_are_near_chance() -> None:
    labels = np.arange(4000) % 5
    assert h_score(np.eye(5)[labels], labels) == pytest.approx(4, abs=1e-9)
    noise = np.random.default_rng(0).standard_normal((4000, 10))
    # Chance explains d / (n - 1) of K - 1 directions among classes.
    assert h_score(noise, labels) == pytest.approx(4 * 10 / 3999, rel=1)


def test_with_fewer_samples_than_features_every_class_is_explained() -> None:
    x, labels = sample(20, 100, 4)
    # The scores are equal to the last digit, so that such sources tie.
    assert all(h_score(sample(20, 100, 4, seed)[0], labels) == 3 for seed in range(20))
    assert h_score(x[:, :19], labels) == 3 > h_score(x[:, :18], labels)
    assert h_score(x, labels, shrinkage=True) < 2.99


def test_the_element_wise_product_in_place_of_the_matrix_product_breaks_the_bound() -> None:
    # The form in which scores have been released: its values have no bound.
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 3
    common = generator.standard_normal((300, 1))
    x = common + 0.05 * generator.standard_normal((300, 20)) + generator.standard_normal((3, 20))[labels]
    covariance = np.cov(x, rowvar=False)
    between = np.cov(class_means(x, labels), rowvar=False)
    element_wise = float(np.trace(np.linalg.pinv(covariance, rcond=1e-5) * between))
    assert element_wise > 2 * (3 - 1)
    assert h_score(x, labels) <= 2 + 1e-9
    assert h_score(x, labels) == pytest.approx(written_out(x, labels), rel=1e-8)


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

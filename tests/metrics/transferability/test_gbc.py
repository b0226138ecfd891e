"""GBC against the Bhattacharyya distance of full matrices, pair by pair, and its bounds."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from headstart.metrics.transferability.gbc import Covariance, Variant, gbc


def sample(samples: int, features: int, classes: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) % classes)
    centres = 0.7 * generator.standard_normal((classes, features))
    spread = generator.uniform(0.5, 1.5, (classes, features))
    return generator.standard_normal((samples, features)) * spread[labels] + centres[labels] + 4, labels


def pair_by_pair(features: NDArray[np.float64], labels: NDArray[np.int64], covariance: str, variant: str) -> float:
    total = 0.0
    for first in np.unique(labels):
        for second in np.unique(labels):
            if first == second:
                continue
            means, matrices = [], []
            for label in (first, second):
                rows = features[labels == label]
                variances = np.maximum(rows.var(0), 1e-4)
                if covariance == "spherical":
                    variances = np.full_like(variances, variances.mean())
                means.append(rows.mean(0))
                matrices.append(np.diag(variances))
            middle = (matrices[0] + matrices[1]) / 2
            difference = means[0] - means[1]
            logarithms = [np.linalg.slogdet(matrix)[1] for matrix in (middle, *matrices)]
            spread = 0.5 * (logarithms[0] - (logarithms[1] + logarithms[2]) / 2)
            if covariance == "spherical" and variant == "released":
                spread /= features.shape[1]
            distance = difference @ np.linalg.solve(middle, difference) / 8 + spread
            total -= math.exp(-distance)
    return total


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
@pytest.mark.parametrize("variant", ["textbook", "released"])
@pytest.mark.parametrize("pca", [None, 3])
@pytest.mark.parametrize(("samples", "features", "classes"), [(60, 6, 4), (30, 50, 3)])
def test_as_pair_by_pair(
    covariance: Covariance, variant: Variant, pca: int | None, samples: int, features: int, classes: int
) -> None:
    x, labels = sample(samples, features, classes)
    reduced = x if pca is None else PCA(min(pca, samples, features), svd_solver="full").fit_transform(x)
    expected = pair_by_pair(reduced, labels, covariance, variant)
    assert gbc(x, labels, covariance, pca, variant) == pytest.approx(expected, rel=1e-9)


def test_the_released_form_leaves_out_the_dimensions_of_the_spherical_determinant() -> None:
    x, labels = sample(60, 6, 4)
    assert gbc(x, labels, variant="released") < gbc(x, labels) < 0
    assert gbc(x, labels, "diagonal", variant="released") == gbc(x, labels, "diagonal")
    # Two spheres about one centre, with variances of 1 and 4 in d dimensions.
    d, signs = 6, np.array([1.0, -1.0])
    spheres = np.concatenate([radius * signs[:, None, None] * np.eye(d) * math.sqrt(d) for radius in (1, 2)])
    labels = np.repeat([0, 1], 2 * d)
    base = math.sqrt(1 * 2) / 2.5**0.5
    assert gbc(spheres.reshape(-1, d), labels, pca=None) == pytest.approx(-2 * base**d, rel=1e-12)
    assert gbc(spheres.reshape(-1, d), labels, pca=None, variant="released") == pytest.approx(-2 * base, rel=1e-12)


def test_between_its_ends() -> None:
    labels = np.arange(50) % 5
    assert gbc(np.full((50, 3), 0.1), labels) == -5 * 4
    assert gbc(1000 * np.eye(5)[labels], labels) == 0
    x = np.random.default_rng(0).standard_normal((50, 4))
    assert math.copysign(1, gbc(x, np.zeros(50, dtype=int))) == 1
    assert -5 * 4 < gbc(x, labels) < 0


def test_classes_with_one_sample_have_the_least_variance() -> None:
    x = np.array([[0.0, 0.0], [0.01, 0.0]])
    expected = -2 * math.exp(-(0.01**2) / 1e-4 / 8)
    assert gbc(x, np.array([0, 1]), pca=None) == pytest.approx(expected, rel=1e-12)

"""Regularised discriminants against scikit-learn's with the same covariance."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.fisher_discriminant import (
    all_components,
    class_probabilities,
    of_own_class,
    rows_and_axes,
)
from headstart.tests.material.discriminants import probabilities, within


def sample(samples: int, features: int, scale: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = np.sort(generator.integers(0, 4, samples))
    return scale * (
        generator.standard_normal((samples, features)) + generator.standard_normal((4, features))[labels]
    ), (labels)


@pytest.mark.parametrize(("samples", "features", "scale"), [(120, 6, 0.3), (40, 60, 0.3)])
def test_as_with_scikit_learn(samples: int, features: int, scale: float) -> None:
    x, labels = sample(samples, features, scale)
    shrinkage = float(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1]))
    assert 1e-10 < shrinkage < 1
    statistics = FeatureStatistics(x, labels)
    actual, used = class_probabilities(all_components(statistics), statistics, statistics.dimensions)
    assert used == pytest.approx(shrinkage, rel=1e-9)
    expected = probabilities(x, labels, shrinkage)
    np.testing.assert_allclose(actual, expected, atol=1e-9)
    np.testing.assert_allclose(of_own_class(actual, statistics), expected[np.arange(samples), labels], atol=1e-9)
    shrunken, used = class_probabilities(all_components(statistics), statistics, statistics.dimensions, 0.5)
    np.testing.assert_allclose(shrunken, probabilities(x, labels, 0.5), atol=1e-9)
    assert used == 0.5


@pytest.mark.parametrize(("samples", "features"), [(120, 6), (40, 60)])
def test_the_same_without_a_rotation_of_all_samples(samples: int, features: int) -> None:
    # Constant features and repeated ones leave axes of no spread.
    x, labels = sample(samples, features, 0.3)
    x = np.hstack([x, x[:, :2], np.ones((samples, 1))])
    shrinkage = float(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1]))
    statistics = FeatureStatistics(x, labels)
    rows, axes = rows_and_axes(statistics)
    actual, used = class_probabilities(rows, statistics, statistics.dimensions, axes=axes)
    assert used == pytest.approx(shrinkage, rel=1e-9)
    np.testing.assert_allclose(actual, probabilities(x, labels, shrinkage), atol=1e-9)

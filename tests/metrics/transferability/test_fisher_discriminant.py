"""Regularised discriminants against scikit-learn's with the same covariance."""

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from headstart.metrics import ncti_terms
from headstart.metrics.transferability import fisher_discriminant as discriminants
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.tests.material.discriminants import probabilities
from headstart.tests.material.metric_formulas import fisher_shrinkage, labelled, of_own


@pytest.mark.parametrize(("samples", "features"), [(120, 6), (40, 60)])
def test_as_with_scikit_learn_with_and_without_a_rotation_of_all_samples(samples: int, features: int) -> None:
    # Constant features and repeated ones leave axes of no spread.
    x, labels = labelled(samples, features, 4, scale=0.3)
    x = np.hstack([x, x[:, :2], np.ones((samples, 1))])[np.argsort(labels, kind="stable")]
    labels, shrinkage = np.sort(labels), fisher_shrinkage(x, np.sort(labels))
    assert 1e-10 < shrinkage < 1
    statistics = FeatureStatistics(x, labels)
    for rows, axes in (discriminants.rows_and_axes(statistics), (discriminants.all_components(statistics), None)):
        for option, expected in ((None, shrinkage), (0.5, 0.5)):
            actual, used = discriminants.class_probabilities(rows, statistics, statistics.dimensions, option, axes)
            assert used == pytest.approx(expected, rel=1e-9)
            by_scikit_learn = probabilities(x, labels, expected)
            np.testing.assert_allclose(actual, by_scikit_learn, atol=1e-9)
            of_own_class = discriminants.of_own_class(actual, statistics)
            np.testing.assert_allclose(of_own_class, of_own(by_scikit_learn, labels), atol=1e-9)


def test_ncti_shrinks_by_the_variances_along_32_of_64_components() -> None:
    x, labels = labelled(200, 90, 3, 0.5, 0.15)
    components = PCA(64, svd_solver="full").fit(x)
    shrinkage = math.exp(-components.explained_variance_[:32].sum())
    expected = of_own(probabilities(components.transform(x), labels, shrinkage), labels).mean()
    assert ncti_terms(x, labels)[1] == pytest.approx(expected, rel=1e-9)

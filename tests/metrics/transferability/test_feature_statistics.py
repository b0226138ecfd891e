"""Statistics that metrics share against plain NumPy, and inputs that raise an error."""

from typing import Any

import numpy as np
import pytest

from headstart.metrics import h_score, leep, nce, num_classes
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.tests.material.metric_formulas import OF_FEATURES, labelled


def test_a_large_mean_does_not_round_the_spread_off() -> None:
    for samples, features in ((40, 7), (9, 30), (12, 12)):
        x, labels = labelled(samples, features)
        eigenvalues = FeatureStatistics(x + 1e7, labels).uncentred_spectrum.eigenvalues
        # Beside an offset common to all, what remains tends to the features less the means of rows and of columns.
        remaining = x - x.mean(0) - x.mean(1)[:, None] + x.mean()
        rank = min(samples, features)
        expected = np.linalg.svd(remaining, compute_uv=False)[: rank - 1] ** 2
        np.testing.assert_allclose(eigenvalues[1:rank], expected, rtol=1e-5)
        # A Gram matrix would lose five digits or more already beside a mean of this size.
        eigenvalues = FeatureStatistics(x + 1e5, labels).uncentred_spectrum.eigenvalues
        np.testing.assert_allclose(eigenvalues[:rank], np.linalg.svd(x + 1e5, compute_uv=False) ** 2, rtol=1e-7)


def test_statistics_stand_in_for_features_in_every_metric() -> None:
    x, labels = labelled(60, 8)
    statistics = FeatureStatistics(x, labels)
    for name, metric in OF_FEATURES.items():
        value = metric(statistics)
        assert type(value) is (tuple if name in ("etran", "ncti") else float)
        assert value == metric(x, labels)
    with pytest.raises(ValueError, match="labels must be left out"):
        h_score(statistics, labels)
    with pytest.raises(ValueError, match="labels are missing"):
        h_score(x)


def test_labels_with_gaps_are_as_labels_without_and_features_stay_as_they_are() -> None:
    x, labels = labelled(60, 8)
    before, gaps = x.copy(), np.array([3, 7, 1000])[labels]
    for metric in OF_FEATURES.values():
        assert metric(x, gaps) == metric(x, labels)
    np.testing.assert_array_equal(x, before)
    assert num_classes(gaps) == num_classes(labels) == 3
    assert leep(np.full((60, 2), 0.5), gaps) == leep(np.full((60, 2), 0.5), labels)
    assert nce(gaps, labels) == nce(labels, gaps) == 0


REFUSED: list[tuple[Any, Any, str]] = [
    (np.zeros((4, 2, 2)), np.zeros(4, dtype=int), "features must be \\[samples, features\\]"),
    (np.zeros((0, 3)), np.zeros(0, dtype=int), "features must be"),
    (np.array([["a"]] * 4), np.zeros(4, dtype=int), "features must be real"),
    ([[1.0], [1.0, 2.0]], np.zeros(2, dtype=int), "features must be an array, or lists whose lengths agree"),
    (np.array([[0.0], [np.nan]]), np.zeros(2, dtype=int), "features must be finite; row 1"),
    (np.zeros((4, 2)), np.zeros(3, dtype=int), "labels must be \\[4\\]"),
    (np.zeros((4, 2)), None, "labels must be \\[4\\], one for every sample, not \\[\\]"),
    (np.zeros((4, 2)), np.zeros(4), "labels must be integers"),
    (np.zeros((4, 2)), np.full(4, -1), "labels must be 0 or more, not -1"),
]


def test_features_and_labels_are_refused_by_name() -> None:
    for features, labels, message in REFUSED:
        with pytest.raises(ValueError, match=message):
            FeatureStatistics(features, labels)

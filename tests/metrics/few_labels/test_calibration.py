"""Temperatures and calibration errors: recovered from simulated predictions, and plain sums."""

import numpy as np
import pytest
from scipy.special import softmax

from headstart.metrics.few_labels.calibration import (
    calibration_error,
    cross_entropies,
    fit_temperature,
    probabilities,
)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_temperature_is_recovered(scale: float) -> None:
    generator = np.random.default_rng(0)
    logits = 2 * generator.standard_normal((20_000, 3))
    labels = (softmax(logits, axis=1).cumsum(1) < generator.random((20_000, 1))).sum(1)
    assert fit_temperature(scale * logits, labels) == pytest.approx(scale, rel=0.05)


def test_right_predictions_alone_are_not_certain() -> None:
    logits, labels = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0), np.repeat([0, 1], 5)
    found = probabilities(logits, fit_temperature(logits, labels))
    # Platt's targets for five samples of a class.
    assert found.max(1) == pytest.approx(np.full(10, 6 / 7), abs=1e-3)
    again = fit_temperature(np.tile(logits, (4, 1)), np.tile(labels, 4), repeats=4)
    assert again == pytest.approx(fit_temperature(logits, labels), rel=1e-3)


def test_calibration_error_is_the_sum_over_bins() -> None:
    confidences = np.array([0.6] * 10 + [0.9] * 10)
    correct = np.array([True] * 5 + [False] * 5 + [True] * 10)
    assert calibration_error(confidences, correct) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert calibration_error(np.array([0.75] * 4), np.array([True, True, True, False])) == pytest.approx(0)


def test_cross_entropy() -> None:
    logits = np.array([[2.0, 0.0], [0.0, 0.0]])
    assert cross_entropies(logits, np.array([0, 1]), 2.0) == pytest.approx([np.log1p(np.exp(-1)), np.log(2)])

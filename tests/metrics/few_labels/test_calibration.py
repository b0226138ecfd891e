"""Temperatures and calibration errors: recovered from simulated predictions, and plain sums."""

import numpy as np
import pytest
from scipy.special import softmax

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.calibration import (
    calibration_error,
    cross_entropies,
    fit_temperature,
    probabilities,
    sharpen,
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
    # Half an error in eleven.
    assert found.max(1) == pytest.approx(np.full(10, 1 - 0.5 / 11), abs=1e-3)
    again = fit_temperature(np.tile(logits, (4, 1)), np.tile(labels, 4), repeats=4)
    assert again == pytest.approx(fit_temperature(logits, labels), rel=1e-3)


@pytest.mark.parametrize(
    ("classes", "per_class", "scale"), [(2, 30, 1), (6, 10, 1), (10, 20, 3), (40, 3, 2), (100, 3, 4)]
)
def test_probabilities_hold_for_few_samples_of_many_classes(classes: int, per_class: int, scale: float) -> None:
    generator = np.random.default_rng(classes)

    def draw(count: int) -> tuple[Floats, Indices]:
        logits = scale * generator.standard_normal((count, classes))
        return logits, (softmax(logits, axis=1).cumsum(1) < generator.random((count, 1))).sum(1)

    errors, ratios = [], []
    for _ in range(20):
        known, held_out = draw(classes * per_class), draw(2_000)
        temperature = fit_temperature(*known)
        found = probabilities(held_out[0], temperature)
        errors.append(calibration_error(found.max(1), found.argmax(1) == held_out[1]))
        best = min(cross_entropies(*held_out, each).mean() for each in np.geomspace(0.3, 3, 41))
        ratios.append(cross_entropies(*held_out, temperature).mean() / best)
    assert np.mean(errors) < 0.05
    assert np.mean(ratios) < 1.02


def test_sharpened_probabilities_have_the_gain_unless_they_are_certain() -> None:
    logits = np.random.default_rng(0).standard_normal((50, 4))
    before = probabilities(logits, 2.0).max(1).mean()
    assert probabilities(logits, sharpen(logits, 2.0, 0.2)).max(1).mean() == pytest.approx(before + 0.2)
    assert sharpen(logits, 2.0, 0.0) == 2.0
    assert sharpen(logits, 2.0, 1 - before) == 2.0


def test_calibration_error_is_the_sum_over_bins() -> None:
    confidences = np.array([0.6] * 10 + [0.9] * 10)
    correct = np.array([True] * 5 + [False] * 5 + [True] * 10)
    assert calibration_error(confidences, correct) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert calibration_error(np.array([0.75] * 4), np.array([True, True, True, False])) == pytest.approx(0)


def test_cross_entropy() -> None:
    logits = np.array([[2.0, 0.0], [0.0, 0.0]])
    assert cross_entropies(logits, np.array([0, 1]), 2.0) == pytest.approx([np.log1p(np.exp(-1)), np.log(2)])

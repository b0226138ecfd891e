"""The forecast of `headstart fit`: that of the curve, and wider where its last point is uncertain."""

import numpy as np
import pytest

from headstart.evaluation.classifiers.assessment import forecast_rows
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy
from headstart.metrics.forecast.curve_forecast import forecast_curve

SIZES = [3, 6, 9, 12, 18, 24]
CURVE = [np.array([0.4, 0.5, 0.6]) + 0.03 * index for index in range(len(SIZES))]


def forecast(low: float, high: float) -> list[tuple[float, float, float]]:
    expected = ExpectedAccuracy(0, 0.7, low, high, 0.7)
    rows = forecast_rows(SIZES, CURVE, expected, 30, 3, "streaming_lda")
    assert [(row["labels"], row["level"]) for row in rows] == [(60, 0.8), (120, 0.8), (240, 0.8)]
    return [(row["interval"][0], row["estimate"], row["interval"][1]) for row in rows]


def test_a_certain_accuracy_is_continued_as_a_curve_is() -> None:
    accuracies = np.column_stack([*CURVE, np.full(3, 0.7)])
    found = forecast_curve(np.array([*SIZES, 30]), accuracies, 3, "streaming_lda")
    for times, (low, estimate, high) in zip((2, 4, 8), forecast(0.7, 0.7), strict=True):
        expected, intervals = found.at(times)
        assert (low, estimate, high) == pytest.approx((intervals[0.8][0], expected, intervals[0.8][1]))


def test_a_curve_whose_last_points_do_not_rise_is_not_forecast() -> None:
    generator = np.random.default_rng(0)
    flat = [np.clip(0.9 + generator.normal(0, 0.01, 3), 0, 1) for _ in SIZES]
    expected = ExpectedAccuracy(0, 0.8, 0.7, 0.9, 0.8)
    assert forecast_rows(SIZES, flat, expected, 30, 3, "streaming_lda") == []
    assert forecast_rows([], [], expected, 3, 3, "streaming_lda") == []
    # It has risen at first, and no longer does.
    assert forecast_rows(SIZES, [np.full(3, 0.1), *flat[1:]], expected, 30, 3, "streaming_lda") == []


def test_an_uncertain_accuracy_makes_a_forecast_uncertain() -> None:
    certain, uncertain, worse = forecast(0.7, 0.7), forecast(0.5, 0.85), forecast(0.5, 0.7)
    for row, other, below in zip(certain, uncertain, worse, strict=True):
        assert other[0] < row[0] < row[1] == other[1] < row[2] < other[2]
        # Only the side that is uncertain is wider, and by less than both reaches together.
        assert below == pytest.approx((other[0], row[1], row[2]))
        assert other[0] > row[0] - 0.2

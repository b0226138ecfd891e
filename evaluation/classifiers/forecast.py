"""The forecast of the learning curve."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import Forecaster

LEVEL = 0.8


def forecast_rows(
    sizes: Sequence[int],
    curve: Sequence[Floats],
    expected: ExpectedAccuracy,
    labels: int,
    classes: int,
    method: str,
    forecaster: Forecaster | None = None,
) -> list[dict[str, Any]]:
    """Return the forecast accuracies at 2, 4 and 8 times the labels.

    The curve ends with the expected accuracy of all labels. How uncertain that is counts: the lower end of a forecast
    is that from its lower end, and the upper end that from its upper end.

    Args:
        sizes: Labels at each point of the curve.
        curve: Accuracies at each point, `[orderings]` each, of which all points have the first ones.
        expected: The expected accuracy.
        labels: Number of all labels.
        classes: Number of classes.
        method: Name of the method.
        forecaster: What forecasts; by default what the curves of the suite calibrate.

    Returns:
        Rows with `labels`, `estimate`, and `interval` with its `level`.
    """
    orderings = min(map(len, curve), default=1)
    before = [values[:orderings] for values in curve]

    def continued(accuracy: float) -> CurveForecast:
        accuracies = np.column_stack([*before, np.full(orderings, accuracy)])
        return forecast_curve(np.array([*sizes, labels]), accuracies, classes, method, forecaster=forecaster)

    low, middle, high = map(continued, (expected.low, expected.estimate, expected.high))
    return [
        {
            "labels": times * labels,
            "estimate": middle.at(times)[0],
            "interval": [low.at(times)[1][LEVEL][0], high.at(times)[1][LEVEL][1]],
            "level": LEVEL,
        }
        for times in TIMES
    ]

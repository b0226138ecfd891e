"""The forecast of the learning curve."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from headstart.metrics.arrays import Floats
from headstart.metrics.few_labels.expected_accuracy import LEVEL as EXPECTED_LEVEL
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import Forecaster, accuracy_of

LEVEL = 0.8
# The last points of a curve rise if the accuracy has grown by more than so many of its standard errors since a quarter
# of the labels. Without a quarter, the first point is taken.
STANDARD_ERRORS, QUARTER = 1.0, 4
# How wide a normal variable's interval of this coverage is, as a share of that of the expected accuracy.
SHARE = float(ndtri((1 + LEVEL) / 2) / ndtri((1 + EXPECTED_LEVEL) / 2))


def rises(sizes: Sequence[int], curve: Sequence[Floats], labels: int) -> bool:
    """Return whether the last points of a curve rise, beyond what the choice of the photos explains.

    Args:
        sizes: Labels at each point of the curve.
        curve: Accuracies at each point, `[orderings]` each, of which all points have the first ones.
        labels: Number of all labels.
    """
    orderings = min(map(len, curve), default=1)
    means = [float(values[:orderings].mean()) for values in curve]
    if not means:
        return False
    earlier = max((index for index, size in enumerate(sizes) if QUARTER * size <= sizes[-1]), default=0)
    error = math.sqrt(means[-1] * (1 - means[-1]) / labels)
    return means[-1] - means[earlier] > STANDARD_ERRORS * error


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

    The curve ends with the expected accuracy of all labels. The uncertainty of this accuracy counts as well. The
    forecast's reach, in the logarithm of the error, is the root of the sum of two squares. One is of its own reach. The
    other is of its shift if the curve ends at the lower or upper end of the expected accuracy's interval.

    Args:
        sizes: Labels at each point of the curve.
        curve: Accuracies at each point, `[orderings]` each, of which all points have the first ones.
        expected: The expected accuracy.
        labels: Number of all labels.
        classes: Number of classes.
        method: Name of the method.
        forecaster: Forecaster; by default the one calibrated on the curves of the suite.

    Returns:
        Rows with `labels`, `estimate`, and `interval` with its `level`; none if the curve's last points do not rise.
    """
    if not rises(sizes, curve, labels):
        return []
    orderings = min(map(len, curve), default=1)
    before = [values[:orderings] for values in curve]

    def continued(accuracy: float) -> CurveForecast:
        accuracies = np.column_stack([*before, np.full(orderings, accuracy)])
        return forecast_curve(np.array([*sizes, labels]), accuracies, classes, method, forecaster=forecaster)

    middle = continued(expected.estimate)
    others = [continued(end) for end in (expected.low, expected.high)]
    rows = []
    for times in TIMES:
        estimate, intervals = middle.at(times)
        error = np.log(1 - estimate)
        reach = np.log(1 - np.array(intervals[LEVEL])) - error
        moved = np.log(1 - np.array([each.at(times)[0] for each in others])) - error
        ends = accuracy_of(error + np.hypot(reach, SHARE * moved) * [1, -1])
        rows.append({"labels": times * labels, "estimate": estimate, "interval": ends.tolist(), "level": LEVEL})
    return rows

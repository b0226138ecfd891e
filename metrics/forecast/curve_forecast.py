"""The forecast of one learning curve, and the empirical coverage of forecast intervals on left-out data sets."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats
from headstart.metrics.forecast.forecaster import (
    FURTHEST,
    LEVELS,
    Forecaster,
    data_set_weights,
    ends_of,
    known_cases,
    observe,
)
from headstart.metrics.forecast.known_curves import shipped_curves

# Empirical coverage of the intervals of forecasters that are calibrated on the curves of the suite.
COVERAGE = Path(__file__).with_name("coverage.json")
# Multiples of the known labels for which tables show forecasts.
TIMES = (2, 4, 8)
# Number of points of a forecast, up to `FURTHEST` times the known labels, for plots and thresholds.
STEPS = 96


@dataclass(frozen=True)
class CurveForecast:
    """The forecast of one learning curve.

    Attributes:
        known: Number of known labels.
        accuracy: Accuracy after the known labels, the mean over orderings.
        later: The forecasts, a row for each of `STEPS` numbers of labels up to `FURTHEST` times the known ones. The
            columns are `ratio`, the multiple of the known labels; `labels`, the product of both, not rounded; and those
            of `Forecaster.forecast`.
        is_known_method: Whether the suite has curves of the method; other methods get the widest intervals.
    """

    known: int
    accuracy: float
    later: pd.DataFrame
    is_known_method: bool

    def at(self, times: float) -> tuple[float, dict[float, tuple[float, float]]]:
        """Return the expected accuracy at a multiple of the known labels, and its interval by nominal coverage."""
        row = self.later.loc[(self.later["labels"] - times * self.known).abs().idxmin()]
        ends = {level: (float(row[low]), float(row[high])) for level in LEVELS for low, high in [ends_of(level)]}
        return float(row["expected"]), ends

    def reaches(self, threshold: float) -> dict[float, tuple[float | None, float | None]]:
        """Return an interval of the number of labels at which the curve reaches an accuracy, by nominal coverage.

        Args:
            threshold: The accuracy.

        Returns:
            Lower and upper end; None for an end beyond `FURTHEST` times the known labels, where nothing is forecast.
        """
        ends = {level: [self._first(self.later[end] >= threshold) for end in ends_of(level)] for level in LEVELS}
        return {level: (of_upper, of_lower) for level, (of_lower, of_upper) in ends.items()}

    def meets(self, threshold: float, consecutive: int, step: int) -> dict[float, tuple[int | None, int | None]]:
        """Return an interval of the number of samples at which a criterion is met, by nominal coverage.

        The criterion is met at the end of a streak of evaluations, which begins where the threshold is reached. If the
        interval of this beginning reaches down to the known labels, the streak may have begun within them. It then ends
        with the next evaluation at the earliest.

        Args:
            threshold: The accuracy of the criterion.
            consecutive: How many evaluations in a row must reach it.
            step: Samples between two evaluations.

        Returns:
            Lower and upper end; None for one whose streak begins beyond `FURTHEST` times the known labels.
        """

        def end(reached: float | None) -> int | None:
            return None if reached is None else math.ceil(reached / step) * step + (consecutive - 1) * step

        return {
            level: (self.known + step if low == self.later["labels"][0] else end(low), end(high))
            for level, (low, high) in self.reaches(threshold).items()
        }

    def _first(self, reached: pd.Series[bool]) -> float | None:
        labels = self.later["labels"][reached]
        return float(labels.iloc[0]) if len(labels) else None


@cache
def shipped_forecaster() -> Forecaster:
    """Return the forecaster that is calibrated on all curves of the suite."""
    return Forecaster(known_cases(shipped_curves()))


def forecast_curve(
    labels: NDArray[np.int64],
    accuracies: Floats,
    classes: int,
    method: str,
    known: int | None = None,
    forecaster: Forecaster | None = None,
) -> CurveForecast:
    """Forecast a learning curve from its beginning.

    Args:
        labels: Numbers of labels at which accuracy was measured, ascending, `[labels]`.
        accuracies: The accuracies, `[orderings, labels]`; those at more labels than `known` are not read.
        classes: Number of classes.
        method: Name of the method in the suite, such as `streaming_lda`; `baseline` and `sgd` are gradient descent with
            Adam and SGD.
        known: Number of known labels; by default all.
        forecaster: The forecaster; by default `shipped_forecaster()`.

    Returns:
        The forecast of the mean accuracy over the same number of orderings.

    Raises:
        ValueError: There is no accuracy at up to `known` labels, or one of them is NaN.

    Example:
        >>> labels = np.array([5, 10, 15, 20])
        >>> forecast_curve(labels, np.array([[0.5, 0.6, 0.66, 0.7]]), 2, "streaming_lda").at(2)[0] > 0.7
        True
    """
    forecaster = forecaster or shipped_forecaster()
    is_known = labels <= (labels[-1] if known is None else known)
    if not is_known.any() or np.isnan(accuracies[:, is_known]).any():
        raise ValueError(f"labels: accuracies up to {known} labels are missing")
    labels, mean = labels[is_known], accuracies[:, is_known].mean(0)
    observed = observe(labels, mean[None], int(labels[-1]), np.array([classes]), len(accuracies))

    ratios, end = np.geomspace(1, FURTHEST, STEPS + 1)[1:], int(labels[-1])
    cases = pd.concat([observed] * STEPS, ignore_index=True).assign(method=method, ratio=ratios)
    later = forecaster.forecast(cases).assign(labels=end * ratios)
    return CurveForecast(end, float(mean[-1]), later, method in forecaster.methods.tolist())


def leave_data_sets_out(cases: pd.DataFrame) -> pd.DataFrame:
    """Return cases with forecasts that leave one data set out: those of a data set use the cases of all others.

    Args:
        cases: The cases, of at least three data sets.
    """
    parts = [Forecaster(cases[cases["data_set"] != name]).forecast(part) for name, part in cases.groupby("data_set")]
    return pd.concat(parts, ignore_index=True)


def mean_over_data_sets(forecasts: pd.DataFrame, values: pd.Series[Any]) -> float:
    """Return the mean of one value per forecast, with the same total weight for every data set."""
    return float(np.average(values, weights=data_set_weights(forecasts["data_set"])))


def empirical_coverage(forecasts: pd.DataFrame, level: float) -> float:
    """Return the share of intervals that cover the accuracy, with the same total weight for every data set."""
    low, high = ends_of(level)
    return mean_over_data_sets(forecasts, forecasts["accuracy"].between(forecasts[low], forecasts[high]))


def mean_width(forecasts: pd.DataFrame, level: float) -> float:
    """Return the mean width of intervals, with the same total weight for every data set."""
    low, high = ends_of(level)
    return mean_over_data_sets(forecasts, forecasts[high] - forecasts[low])


@cache
def read_coverage() -> dict[str, float]:
    """Return the empirical coverage on left-out data sets by the nominal one: `{"0.8": 0.8}`."""
    shares: dict[str, float] = json.loads(COVERAGE.read_text())
    return shares

"""The forecast of one learning curve, and how often intervals of forecasts hold on a data set that was left out."""

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

# How often intervals of forecasts by the curves of the suite hold.
COVERAGE = Path(__file__).with_name("coverage.json")
# How many times as many labels a table has.
TIMES = (2, 4, 8)
# Points of a forecast between the labels known and `FURTHEST` times as many, for plots and thresholds.
STEPS = 96


@dataclass(frozen=True)
class CurveForecast:
    """The forecast of one learning curve.

    Attributes:
        known: Number of labels that are known.
        accuracy: Accuracy there, the mean over orderings.
        later: A row for each of some numbers of labels, from there to `FURTHEST` times as many: `ratio`, how many times
            as many labels they are; `labels`, their number, not rounded; and the columns of `Forecaster.forecast`.
        is_known_method: Whether the suite has curves of the method; others have the widest of all methods' intervals.
    """

    known: int
    accuracy: float
    later: pd.DataFrame
    is_known_method: bool

    def at(self, times: float) -> tuple[float, dict[float, tuple[float, float]]]:
        """Return the expected accuracy at so many times the labels, and its interval by the coverage promised."""
        row = self.later.loc[(self.later["labels"] - times * self.known).abs().idxmin()]
        ends = {level: (float(row[low]), float(row[high])) for level in LEVELS for low, high in [ends_of(level)]}
        return float(row["expected"]), ends

    def reaches(self, threshold: float) -> dict[float, tuple[float | None, float | None]]:
        """Return between which numbers of labels the curve reaches an accuracy, by the coverage promised.

        Args:
            threshold: The accuracy.

        Returns:
            Lower and upper end; None for an end beyond `FURTHEST` times the labels, where nothing is known.
        """
        ends = {level: [self._first(self.later[end] >= threshold) for end in ends_of(level)] for level in LEVELS}
        return {level: (of_upper, of_lower) for level, (of_lower, of_upper) in ends.items()}

    def meets(self, threshold: float, consecutive: int, step: int) -> dict[float, tuple[int | None, int | None]]:
        """Return between which samples a criterion is met, by the coverage promised.

        The streak begins where the threshold is reached, and ends some evaluations later. A streak that may begin
        immediately may have begun within the known labels. It then ends with the next evaluation at the earliest.

        Args:
            threshold: The accuracy of the criterion.
            consecutive: How many evaluations in a row must reach it.
            step: Samples between two evaluations.

        Returns:
            Lower and upper end; None for one whose streak begins beyond `FURTHEST` times the labels.
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
    """Return the forecaster that all curves of the suite calibrate."""
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
        known: Number of labels that are known; by default all.
        forecaster: What forecasts; by default what the curves of the suite calibrate.

    Returns:
        The forecast of the mean accuracy over the same number of orderings.

    Raises:
        ValueError: No accuracy was measured at so few labels, or one of them is missing.

    Example:
        >>> labels = np.array([5, 10, 15, 20])
        >>> forecast_curve(labels, np.array([[0.5, 0.6, 0.66, 0.7]]), 2, "streaming_lda").at(2)[0] > 0.7
        True
    """
    forecaster = forecaster or shipped_forecaster()
    within = labels <= (labels[-1] if known is None else known)
    if not within.any() or np.isnan(accuracies[:, within]).any():
        raise ValueError(f"labels: accuracies up to {known} labels are missing")
    labels, mean = labels[within], accuracies[:, within].mean(0)
    seen = observe(labels, mean[None], int(labels[-1]), np.array([classes]), len(accuracies))

    ratios, end = np.geomspace(1, FURTHEST, STEPS + 1)[1:], int(labels[-1])
    cases = pd.concat([seen] * STEPS, ignore_index=True).assign(method=method, ratio=ratios)
    later = forecaster.forecast(cases).assign(labels=end * ratios)
    return CurveForecast(end, float(mean[-1]), later, method in forecaster.methods.tolist())


def leave_data_sets_out(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the cases with their forecasts, those of every data set by the cases of all others.

    Args:
        cases: The cases, of three data sets at least.
    """
    parts = [Forecaster(cases[cases["data_set"] != name]).forecast(part) for name, part in cases.groupby("data_set")]
    return pd.concat(parts, ignore_index=True)


def mean_over_data_sets(forecasts: pd.DataFrame, values: pd.Series[Any]) -> float:
    """Return the mean of values of the same forecasts, every data set counting alike."""
    return float(np.average(values, weights=data_set_weights(forecasts["data_set"])))


def share_held(forecasts: pd.DataFrame, level: float) -> float:
    """Return the share of intervals that hold, every data set counting alike."""
    low, high = ends_of(level)
    return mean_over_data_sets(forecasts, forecasts["accuracy"].between(forecasts[low], forecasts[high]))


def mean_width(forecasts: pd.DataFrame, level: float) -> float:
    """Return the mean width of intervals, every data set counting alike."""
    low, high = ends_of(level)
    return mean_over_data_sets(forecasts, forecasts[high] - forecasts[low])


@cache
def read_coverage() -> dict[str, float]:
    """Return the share of intervals that held on data sets left out, by the coverage they promise: `{"0.8": 0.8}`."""
    shares: dict[str, float] = json.loads(COVERAGE.read_text())
    return shares

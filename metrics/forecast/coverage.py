"""How often intervals of forecasts hold the accuracy on a data set that was left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.forecast.forecaster import (
    LEVELS,
    Cases,
    Forecaster,
    Forecasts,
    data_set_weights,
    join,
    weighted_quantile,
)
from headstart.metrics.forecast.observations import log_error

SHIPPED = Path(__file__).with_name("coverage.json")


@dataclass(frozen=True)
class Judged:
    """Forecasts of every known case, each by the curves of other data sets alone.

    Attributes:
        cases: The cases.
        forecasts: Their forecasts.
    """

    cases: Cases
    forecasts: Forecasts

    def coverage(self, level: float, chosen: Flags) -> float:
        """Return the share of intervals that hold among chosen cases `[cases]`, every data set counting alike."""
        low, high = self.forecasts.intervals[level]
        return self._mean((low <= self.cases.accuracies) & (self.cases.accuracies <= high), chosen)

    def width(self, level: float, chosen: Flags) -> float:
        """Return the mean width of intervals among chosen cases."""
        low, high = self.forecasts.intervals[level]
        return self._mean(high - low, chosen)

    def factor(self, level: float, chosen: Flags) -> float:
        """Return how many times as wide intervals of chosen cases hold as often as they promise.

        The width is that of the logarithm of the error.
        """
        expected, upper = np.log(1 - self.forecasts.accuracies), np.log(1 - self.forecasts.intervals[level][1])
        needed = abs(log_error(self.cases.accuracies) - expected) / (expected - upper)
        return weighted_quantile(needed[chosen], data_set_weights(self.cases.data_sets[chosen]), level)

    def root_mean_square(self, accuracies: Floats, chosen: Flags) -> float:
        """Return the root mean square error of forecast accuracies `[cases]` among chosen cases."""
        return float(np.sqrt(self._mean((accuracies - self.cases.accuracies) ** 2, chosen)))

    def _mean(self, values: Floats | Flags, chosen: Flags) -> float:
        return float(np.average(values[chosen], weights=data_set_weights(self.cases.data_sets[chosen])))


def leave_data_sets_out(cases: Cases) -> Judged:
    """Forecast the cases of every data set by the cases of all others.

    Args:
        cases: The cases, of three data sets at least.
    """
    parts, forecasts = [], []
    for data_set in np.unique(cases.data_sets):
        own = cases.data_sets == data_set
        parts.append(cases.where(own))
        forecasts.append(Forecaster(cases.where(~own)).forecast(parts[-1]))
    accuracies = np.concatenate([each.accuracies for each in forecasts])
    intervals = {level: np.concatenate([each.intervals[level] for each in forecasts], axis=1) for level in LEVELS}
    return Judged(join(parts), Forecasts(accuracies, intervals))


@cache
def read_coverage() -> dict[str, float]:
    """Return the share of intervals that held on data sets left out, by the coverage they promise: `{"0.8": 0.8}`."""
    shares: dict[str, float] = json.loads(SHIPPED.read_text())
    return shares

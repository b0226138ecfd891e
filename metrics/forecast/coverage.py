"""How often intervals of forecasts hold the accuracy on a data set that was left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.forecast.forecaster import LEVELS, Forecaster, Forecasts, data_set_weights

SHIPPED = Path(__file__).with_name("coverage.json")


@dataclass(frozen=True)
class Judged:
    """Forecasts of every known case, each by the curves of other data sets alone.

    Attributes:
        cases: The cases.
        forecasts: Their forecasts.
    """

    cases: pd.DataFrame
    forecasts: Forecasts

    def coverage(self, level: float, chosen: Flags) -> float:
        """Return the share of intervals that hold among chosen cases `[cases]`, every data set counting alike."""
        low, high = self.forecasts.intervals[level]
        return self._mean(self.cases["accuracy"].between(low, high).to_numpy(), chosen)

    def width(self, level: float, chosen: Flags) -> float:
        """Return the mean width of intervals among chosen cases."""
        low, high = self.forecasts.intervals[level]
        return self._mean(high - low, chosen)

    def root_mean_square(self, accuracies: Floats, chosen: Flags) -> float:
        """Return the root mean square error of forecast accuracies `[cases]` among chosen cases."""
        return float(np.sqrt(self._mean((accuracies - self.cases["accuracy"].to_numpy()) ** 2, chosen)))

    def _mean(self, values: Floats | Flags, chosen: Flags) -> float:
        return float(np.average(values[chosen], weights=data_set_weights(self.cases["data_set"][chosen])))


def leave_data_sets_out(cases: pd.DataFrame) -> Judged:
    """Forecast the cases of every data set by the cases of all others.

    Args:
        cases: The cases, of three data sets at least.
    """
    parts, forecasts = [], []
    for name, part in cases.groupby("data_set"):
        parts.append(part)
        forecasts.append(Forecaster(cases[cases["data_set"] != name]).forecast(part))
    accuracies = np.concatenate([fold.accuracies for fold in forecasts])
    intervals = {level: np.concatenate([fold.intervals[level] for fold in forecasts], axis=1) for level in LEVELS}
    return Judged(pd.concat(parts, ignore_index=True), Forecasts(accuracies, intervals))


@cache
def read_coverage() -> dict[str, float]:
    """Return the share of intervals that held on data sets left out, by the coverage they promise: `{"0.8": 0.8}`."""
    shares: dict[str, float] = json.loads(SHIPPED.read_text())
    return shares

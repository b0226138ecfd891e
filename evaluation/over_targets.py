"""Values on every target as documents and reports have them: each value, their mean, and its interval over targets."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.sample_efficiency.scores import t_interval
from headstart.output.tables import format_number

Values = NDArray[np.float64]


def mean_over_targets(values: Values) -> Values:
    """Return the mean of values `[..., t]` over the targets on which they are defined; NaN if there is none."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


def over_targets(values: Values, targets: Sequence[str]) -> dict[str, Any]:
    """Describe values `[t]`: each of them, their mean, and its t interval over the targets where they are defined."""
    return {
        "mean": number(float(mean_over_targets(values))),
        "ci95": [number(end) for end in t_interval(values[np.isfinite(values)])],
        "per_target": {target: number(value) for target, value in zip(targets, values, strict=True)},
    }


def by_measure(values: Values, targets: Sequence[str]) -> dict[str, Any]:
    """Describe values `[t, e]` by measure, each as `over_targets` does."""
    return {name: over_targets(column, targets) for name, column in zip(MEASURES, values.T, strict=True)}


def with_interval(summary: Mapping[str, Any]) -> str:
    """Format a mean over targets with its interval."""
    low, high = summary["ci95"]
    interval = "" if low is None else f" [{format_number(low, '.3f')}, {format_number(high, '.3f')}]"
    return f"{format_number(summary['mean'], '.3f')}{interval}"


def number(value: float) -> float | None:
    """Return a number as JSON can hold it: None if it is undefined."""
    return float(value) if math.isfinite(value) else None

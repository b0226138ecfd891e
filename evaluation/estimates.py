"""Estimates with their intervals as documents have them and as text, and means over targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.sample_efficiency.scores import finite, finite_ends, t_interval
from headstart.output.tables import format_number


def format_estimate(value: float | None, ends: Sequence[float | None] | None, form: str) -> str:
    """Format a value with the ends of its interval in brackets, if it has one.

    Args:
        value: The value; a dash stands for None.
        ends: The ends of the interval; None, or a first end of None, for no interval.
        form: Format of all numbers.
    """
    between = "" if ends is None or ends[0] is None else f" [{', '.join(format_number(end, form) for end in ends)}]"
    return f"{format_number(value, form)}{between}"


def mean_over_targets(values: Floats) -> Floats:
    """Return the mean of values `[..., t]` over the targets on which they are defined; NaN if there is none."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


def over_targets(values: Floats, targets: Sequence[str]) -> dict[str, Any]:
    """Describe values `[t]`: each of them, their mean, and its t interval over the targets where they are defined."""
    return {
        "mean": finite(float(mean_over_targets(values))),
        "ci95": finite_ends(t_interval(values[np.isfinite(values)])),
        "per_target": {target: finite(value) for target, value in zip(targets, values, strict=True)},
    }


def by_measure(values: Floats, targets: Sequence[str]) -> dict[str, Any]:
    """Describe values `[t, e]` by measure, each as `over_targets` does."""
    return {name: over_targets(column, targets) for name, column in zip(MEASURES, values.T, strict=True)}


def with_interval(summary: Mapping[str, Any]) -> str:
    """Format a mean over targets with its interval."""
    return format_estimate(summary["mean"], summary["ci95"], ".3f")

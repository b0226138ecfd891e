"""Data of the charts: a comparison's traces, aggregated over orderings, as short texts of CSV."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.charts import ROW
from headstart.output.page.layout import Series

# Points of a learning curve, spread evenly over the logarithm of the samples seen.
POINTS = 32
# Percentiles at the ends of the band.
BAND = (10, 90)


def learning_curves(curves: Curves, marks: Mapping[str, int]) -> Series:
    """Aggregate accuracy over orderings: mean and band, in per cent, as far as every ordering of a method goes.

    Args:
        curves: The traces.
        marks: Numbers of the methods, by name.

    Returns:
        CSV with the columns method, samples, mean, low and high; the threshold, and axes that hold it and all lines.
    """
    rows: list[Sequence[float]] = []
    for name, accuracy in zip(curves.methods, 100 * curves.accuracy, strict=True):
        complete = accuracy[:, ~np.isnan(accuracy).any(0)]
        points = thin(complete.shape[1])
        low, high = np.percentile(complete[:, points], BAND, axis=0).round(1)
        mean, seen = complete[:, points].mean(0).round(2), curves.samples_seen[points]
        rows += [(marks[name], *each) for each in zip(seen, mean, low, high, strict=True)]

    _, seen, _, low, high = np.array([*rows]).T
    threshold = 100 * curves.threshold
    heights = {"lowest": min(low.min(), threshold), "highest": max(high.max(), threshold), "threshold": threshold}
    return Series(csv("method,samples,mean,low,high", rows), {**_axis(seen.min(), seen.max()), **heights})


def thin(count: int) -> NDArray[np.int64]:
    """Choose at most `POINTS` of the indices below `count`, the first and last ones among them, denser at the start."""
    if count <= POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, POINTS).round().astype(np.int64)) - 1


def reached(curves: Curves, marks: Mapping[str, int]) -> Series:
    """Return the share of orderings that have met the criterion, in per cent, by the samples at which it changes.

    Args:
        curves: The traces.
        marks: Numbers of the methods, by name.

    Returns:
        CSV with the columns method, samples and share: steps from the first evaluation to the sample limit.
    """
    samples, _ = curves.samples_to_criterion()
    ends = [int(curves.samples_seen[0]), curves.limit]
    rows: list[Sequence[float]] = []
    for name, met in zip(curves.methods, samples, strict=True):
        within = np.sort(met[met <= curves.limit])
        at = np.unique([*ends, *within])
        share = 100 * np.searchsorted(within, at, side="right") / len(met)
        rows += [(marks[name], *each) for each in zip(at, share.round(1), strict=True)]
    return Series(csv("method,samples,share", rows), _axis(*ends))


def intervals(methods: Iterable[Mapping[str, Any]], key: str, marks: Mapping[str, int]) -> Series:
    """Return a score of methods with its intervals; an interval without bounds is not plotted.

    Args:
        methods: Methods as in `leaderboard.json`; those without a value are left out.
        key: The key of the score.
        marks: Numbers of the methods, by name.

    Returns:
        CSV with the columns method, estimate, low and high.
    """
    rows: list[Sequence[float]] = []
    for method in methods:
        value, interval = method[key], method[f"{key}_interval"]
        if value is not None:
            ends = interval if interval and None not in interval else (value, value)
            rows.append((marks[method["name"]], value, *ends))
    return Series(csv("method,estimate,low,high", rows), height=ROW * len(rows))


def _axis(first: float, last: float) -> dict[str, float]:
    # An axis needs two different ends.
    return {"first": float(first), "last": float(max(last, first + 1))}


def csv(header: str, rows: Iterable[Sequence[float]]) -> str:
    """Write numbers as CSV, in as few characters as they need."""
    return "\n".join([header, *(",".join(f"{cell:.6g}" for cell in row) for row in rows)])

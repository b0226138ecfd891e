"""Values of a table that cannot be what they are said to be: codes for missing values, and impossible scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.output.errors import UserError

if TYPE_CHECKING:
    from headstart.evaluation.stability.table_records import TableRecords

# The least and the greatest score of metrics, by their names in the catalogue; that of H-score is classes - 1.
BOUNDS = {
    "gbc": (-np.inf, 0.0),
    "leep": (-np.inf, 0.0),
    "n_leep": (-np.inf, 0.0),
    "nce": (-np.inf, 0.0),
    "h_score": (0.0, np.inf),
    "h_score_shrunk": (0.0, np.inf),
}
CLASSES = "num_classes"
# Metrics whose highest score is a whole number: classes - 1, or 1.
BOUNDED = ("h_score", "h_score_shrunk", "sfda", "knn", "linear_probe")
# Rounding errors beyond a bound, relative to it, and of scores at it.
SAME, AT_BOUND = 1e-6, 1e-9
MOST_NAMED = 3


def require_no_codes(records: TableRecords) -> None:
    """Raise a UserError if one negative number stands among performances that are otherwise 0 or above."""
    performances = np.array(records.performances)
    negative = performances < 0
    codes = np.unique(performances[negative])
    if len(codes) == 1 and codes[0] == round(codes[0]) and (performances >= 0).sum() > negative.sum():
        source, target = records.key(int(np.flatnonzero(negative)[0]))[1:]
        code, cells = f"{codes[0]:g}", len({records.key(i)[1:] for i in np.flatnonzero(negative).tolist()})
        raise UserError(
            f"table: performance is {code} in {cells} cells and 0 or above in all others, as of source {source!r} on "
            f"target {target!r}; if it stands for a missing one, give --missing_values='[{code}]', else "
            "--missing_values='[]'"
        )


def impossible_values(records: TableRecords, metric_of: Mapping[str, str | None]) -> list[str]:
    """Return warnings about values that no accuracy, or no score of its metric, can have.

    Performances are taken for accuracies where most of them are from 0 to 1, or from 0 to 100.

    Args:
        records: The records of a table.
        metric_of: Names in the catalogue of its metrics, None for others.
    """
    performances, scores = np.array(records.performances), np.array(records.scores)
    lines: list[str] = []
    for most, name in ((1.0, "0 to 1"), (100.0, "0 to 100")):
        outside = (performances < 0) | (performances > most * (1 + SAME))
        if np.isfinite(performances).any() and outside.sum() < np.isfinite(performances).sum() / 2:
            lines += _warning(records, outside, f"performances are outside of {name}, where most are", performances)
            break

    metrics = np.array(records.axes[0])
    classes = _classes(records, metric_of)
    for metric in dict.fromkeys(records.axes[0]):
        known = metric_of.get(metric) or ""
        low, high = BOUNDS.get(known, (-np.inf, np.inf))
        highest = np.full(len(scores), high)
        if known in ("h_score", "h_score_shrunk"):
            highest = np.array([classes.get(target, np.inf) - 1 for target in records.axes[2]])
        outside = (metrics == metric) & ((scores < low - SAME) | (scores > highest + SAME * np.maximum(highest, 1)))
        limit = "above classes - 1 or below 0" if low == 0 else "above 0"
        lines += _warning(records, outside, f"scores of {metric} are {limit}, which that metric cannot be", scores)
    return lines


def saturated_scores(records: TableRecords, metric_of: Mapping[str, str | None]) -> list[str]:
    """Return warnings about metrics that are as high as they can be for several sources of a target.

    Such a metric does not rank these sources; `headstart transferability` leaves it out of its mean rank.

    Args:
        records: The records of a table.
        metric_of: Names in the catalogue of its metrics, None for others.
    """
    scores, metrics, targets = np.array(records.scores), np.array(records.axes[0]), np.array(records.axes[2])
    lines = []
    for metric in (name for name, known in metric_of.items() if known in BOUNDED):
        saturated = []
        for target in dict.fromkeys(records.axes[2]):
            its = scores[(metrics == metric) & (targets == target) & np.isfinite(scores)]
            highest = round(its.max(initial=0.0))
            if highest >= 1 and (np.abs(its - highest) <= AT_BOUND).sum() > 1:
                saturated.append(target)
        if saturated:
            more = f" and {len(saturated) - MOST_NAMED:,} more targets" if len(saturated) > MOST_NAMED else ""
            lines.append(
                f"WARNING: {metric} is as high as it can be for two sources or more on "
                f"{', '.join(saturated[:MOST_NAMED])}{more}: it is saturated, and does not rank them."
            )
    return lines


def _classes(records: TableRecords, metric_of: Mapping[str, str | None]) -> dict[str, float]:
    """Return the number of classes of targets, from a column or from the metric that counts them."""
    counted = (
        (target, abs(score))
        for metric, target, score in zip(records.axes[0], records.axes[2], records.scores, strict=True)
        if metric_of.get(metric) == CLASSES and np.isfinite(score)
    )
    return {**dict(counted), **records.classes}


def _warning(records: TableRecords, outside: Flags, problem: str, values: Floats) -> Iterator[str]:
    """Yield a warning that names the first of the values that are outside of their bounds."""
    found = np.flatnonzero(outside).tolist()
    if found:
        named = "; ".join(
            f"{values[i]:g} on line {records.lines[i]} (source {records.axes[1][i]!r}, target {records.axes[2][i]!r})"
            for i in found[:MOST_NAMED]
        )
        more = f" and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
        yield f"WARNING: {len(found):,} {problem}: {named}{more}."

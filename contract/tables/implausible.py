"""Values of a table that cannot be what they are said to be: codes for missing values, and impossible scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headstart.contract.tables.holes import name_some
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.output.errors import UserError

if TYPE_CHECKING:
    from headstart.contract.tables.records import TableRecords

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
# Different codes for missing values that a table may have.
MOST_CODES = 3


def require_no_codes(records: TableRecords) -> None:
    """Raise a UserError if negative whole numbers stand among performances that are mostly 0 or above, as codes do."""
    performances = np.array(records.performances)
    negative = performances < 0
    codes = np.unique(performances[negative])
    if 0 < len(codes) <= MOST_CODES and (codes == codes.round()).all() and (performances >= 0).sum() > negative.sum():
        its = np.flatnonzero(negative).tolist()
        source, target = records.key(its[0])[1:]
        listed, cells = ", ".join(f"{code:g}" for code in codes), len({records.key(i)[1:] for i in its})
        raise UserError(
            f"table: performance is {listed} in {cells} cells and 0 or above in all others, as of source {source!r} on "
            f"target {target!r}; if it means a missing one, give --missing_values='[{listed}]', else "
            "--missing_values='[]'"
        )


def impossible_values(records: TableRecords, metric_of: Mapping[str, str | None]) -> list[str]:
    """Return warnings about values that no accuracy, or no score of its metric, can have.

    Performances are taken for accuracies where most of them are from 0 to 1, or from 0 to 100.

    Args:
        records: The records of a table, one for each row.
        metric_of: Names in the catalogue of its metrics, None for others.
    """
    performances, scores = np.array(records.performances), np.array(records.scores)
    known = np.isfinite(performances)
    lines: list[str] = []
    for most, name in ((1.0, "0 to 1"), (100.0, "0 to 100")):
        outside = (performances < 0) | (performances > most * (1 + SAME))
        if known.any() and outside.sum() < known.sum() / 2:
            lines += _warning(records, outside, f"performances outside of {name}, where most are", performances)
            lines += _other_scale(records, performances) if most > 1 else []
            break

    metrics, classes = np.array(records.axes[0]), _classes(records, metric_of)
    unchecked = dict[str, None]()
    for metric, its in metric_of.items():
        low, high = BOUNDS.get(its or "", (-np.inf, np.inf))
        highest, here = np.full(len(scores), high), metrics == metric
        if its in ("h_score", "h_score_shrunk"):
            highest = np.array([classes.get(target, np.nan) - 1 for target in records.axes[2]])
            if np.isnan(highest[here]).any():
                unchecked[metric] = None
        outside = here & ((scores < low - SAME) | (scores > highest + SAME * np.maximum(highest, 1)))
        limit = "above classes - 1 or below 0" if low == 0 else "above 0"
        lines += _warning(records, outside, f"scores of {metric} {limit}, which is impossible", scores)
    if unchecked:
        lines.append(
            f"Not checked against the number of classes less one, which is unknown: {', '.join(unchecked)}; name a "
            "column by --columns '{classes: NAME}', or give --classes '{TARGET: NUMBER}'."
        )
    return lines


def _other_scale(records: TableRecords, performances: Floats) -> list[str]:
    """Return a warning about targets whose performances are from 0 to 1 where those of others are from 0 to 100."""
    names, targets = _targets(records)
    largest = np.zeros(len(names))
    np.fmax.at(largest, targets, performances)
    small = [name for name, most in zip(names, largest, strict=True) if most <= 1]
    if not small:
        return []
    return [
        f"WARNING: performances are from 0 to 1 on {name_some(small, MOST_NAMED)}, and from 0 to 100 on the other "
        "targets."
    ]


def _targets(records: TableRecords) -> tuple[list[str], Indices]:
    """Return the names of the targets, and the index of that of each record."""
    index = {name: position for position, name in enumerate(dict.fromkeys(records.axes[2]))}
    return list(index), np.fromiter(map(index.__getitem__, records.axes[2]), np.intp, len(records.axes[2]))


def saturated_scores(records: TableRecords, metric_of: Mapping[str, str | None]) -> list[str]:
    """Return warnings about metrics that are as high as they can be for several sources of a target.

    Such a metric does not rank these sources; `headstart transferability` leaves it out of its mean rank.

    Args:
        records: The records of a table.
        metric_of: Names in the catalogue of its metrics, None for others.
    """
    scores, metrics, (names, targets) = np.array(records.scores), np.array(records.axes[0]), _targets(records)
    lines = []
    for metric in (name for name, known in metric_of.items() if known in BOUNDED):
        its = np.flatnonzero((metrics == metric) & np.isfinite(scores))
        highest = np.zeros(len(names))
        np.maximum.at(highest, targets[its], scores[its])
        bound = np.maximum(highest.round(), 1)
        at_bound = its[np.abs(scores[its] - bound[targets[its]]) <= AT_BOUND]
        count = np.bincount(targets[at_bound], minlength=len(names))
        if saturated := [name for name, number in zip(names, count, strict=True) if number > 1]:
            lines.append(
                f"WARNING: {metric} is as high as it can be for two sources or more on "
                f"{name_some(saturated, MOST_NAMED)}: it is saturated, and does not rank them."
            )
    return lines


def _classes(records: TableRecords, metric_of: Mapping[str, str | None]) -> dict[str, float]:
    """Return the number of classes of targets: as given, from a column, or from the metric that counts them."""
    counted = (
        (target, abs(score))
        for metric, target, score in zip(records.axes[0], records.axes[2], records.scores, strict=True)
        if metric_of.get(metric) == CLASSES and np.isfinite(score)
    )
    return {**dict(counted), **records.classes}


def _warning(records: TableRecords, outside: Flags, problem: str, values: Floats) -> Iterator[str]:
    """Yield a warning that names the first of the values that are outside of their bounds, each once."""
    found = {(records.key(i)[1:], values[i]): i for i in reversed(np.flatnonzero(outside).tolist())}
    if found:
        first = sorted(found.values())[:MOST_NAMED]
        named = "; ".join(
            f"{values[i]:g} on line {records.lines[i]} (source {records.axes[1][i]!r}, target {records.axes[2][i]!r})"
            for i in first
        )
        more = f" and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
        yield f"WARNING: {len(found):,} {problem}: {named}{more}."

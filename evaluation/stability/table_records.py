"""The records of a table of scores and performances: their columns, under any of several names, and their values."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from headstart.evaluation.grouping import grouped
from headstart.evaluation.tables import finite_number, read_csv, require_fields
from headstart.metrics.arrays import Indices
from headstart.output.errors import UserError

# Names in the plain layout, and in the tables that were released with Agostinelli et al., How stable are
# transferability metrics evaluations?, ECCV 2022.
HEADERS = {
    "metric": ("metric", "Transferability Metric"),
    "source": ("source", "Source Dataset", "Source Architecture"),
    "target": ("target", "Target Dataset"),
    "score": ("score", "Transferability Metric Score"),
    "performance": ("performance", "Test Mean IoU", "Test Accuracy"),
}
TRAINABLE = "Trainable Backbone"
TRUTH = {"true": True, "false": False}
# Cells of values that could not be computed.
MISSING = ("", "nan", "inf", "-inf")
MOST_NAMED = 20
SAME_PERFORMANCE = 1e-9

Key = tuple[str, str, str]


@dataclass
class TableRecords:
    """The records of a table that count, in the order of its lines.

    Attributes:
        axes: Metrics, sources and targets of the records; the metrics are empty in a table without metrics.
        lines: Its line in the file, from 1.
        scores: Its score, NaN where it is missing.
        performances: Its performance, NaN where it is missing.
        ignored_columns: Columns that were not needed.
    """

    axes: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    lines: array[int] = field(default_factory=lambda: array("q"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    performances: array[float] = field(default_factory=lambda: array("d"))
    ignored_columns: list[str] = field(default_factory=list)

    def key(self, record: int) -> Key:
        """Return the metric, source and target of a record."""
        metric, source, target = (axis[record] for axis in self.axes)
        return metric, source, target

    def indices(self, names: Sequence[Sequence[str]]) -> tuple[Indices, ...]:
        """Return the index of each record's metric, source and target among all names."""
        positions = [{name: index for index, name in enumerate(axis)} for axis in names]
        return tuple(
            np.fromiter(map(position.__getitem__, axis), np.intp, len(axis))
            for position, axis in zip(positions, self.axes, strict=True)
        )


def read_records(
    path: Path,
    trainable: bool,
    exclude_target: bool,
    metrics: Sequence[str] | None,
    columns: Mapping[str, str],
    with_scores: bool,
    with_performances: bool,
) -> TableRecords:
    """Read the records that count, as `headstart.evaluation.stability.table.read_table` describes them.

    Args:
        path: CSV file.
        trainable: Which records count in a table that has the column `Trainable Backbone`.
        exclude_target: Whether records of a target with the source of the same name do not count.
        metrics: Names of the metrics that count; all by default.
        columns: Names of columns in the file, by those of the plain layout.
        with_scores: Whether the file must have metrics and scores.
        with_performances: Whether performances are read from the file; otherwise they are 0.

    Raises:
        UserError: The file cannot be read, a column is missing, or there are wrong entries or no records.
    """
    lines = read_csv("table", path)
    header = next(lines, (1, []))[1]
    index = _find_columns(header, columns, with_scores, with_performances)
    filtered = TRAINABLE in header

    records, wrong = TableRecords(), list[str]()
    present: dict[str, None] = {}

    for line, row in lines:
        try:
            require_fields(row, header)
            metric, source, target = (_name(row, header, index, name) for name in ("metric", "source", "target"))
            if filtered and _truth(row[header.index(TRAINABLE)]) != trainable:
                continue
            present[metric] = None

            if (metrics is None or metric in metrics) and not (exclude_target and source == target):
                score, performance = (_value(row, header, index, name) for name in ("score", "performance"))
                for axis, name in zip(records.axes, (metric, source, target), strict=True):
                    axis.append(name)
                records.lines.append(line)
                records.scores.append(score)
                records.performances.append(performance)
        except ValueError as error:
            wrong.append(f"line {line}, {error}")

    _require_none({"wrong entries": wrong})
    if not present:
        condition = f" with {TRAINABLE} = {trainable}" if filtered else ""
        raise UserError(f"table: {str(path)!r} has no rows{condition}; every row is a cell")
    unknown = [name for name in metrics or () if name not in present]
    if unknown:
        known = ", ".join(filter(None, present)) or "none"
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {known}")
    used = {TRAINABLE, *(header[column] for column in index.values())}
    records.ignored_columns = [name for name in header if name and name not in used]
    return records


def _find_columns(
    header: Sequence[str], columns: Mapping[str, str], with_scores: bool, with_performances: bool
) -> dict[str, int]:
    """Return the index of each needed column by its name in the plain layout."""
    listed = ", ".join(map(repr, header)) or "nothing"
    unknown = [name for name in columns if name not in HEADERS]
    if unknown:
        raise UserError(f"columns: {', '.join(map(repr, unknown))} given; there are {', '.join(HEADERS)}")
    for plain, name in columns.items():
        if name not in header:
            raise UserError(f"columns: {plain} is to be {name!r}, but the first line has {listed}")

    names = {
        plain: [name for name in header if name in ([columns[plain]] if plain in columns else spellings)]
        for plain, spellings in HEADERS.items()
    }
    if not with_performances:
        del names["performance"]
    if not (with_scores or names["metric"] or names["score"]):
        del names["metric"], names["score"]

    for plain, candidates in names.items():
        if len(candidates) != 1:
            allowed = " or ".join(map(repr, HEADERS[plain]))
            problem = f"columns {', '.join(map(repr, candidates))} both" if candidates else f"no column {allowed}"
            raise UserError(
                f"table: {problem} in the first line, which has {listed}; one of them is needed, or its name by columns"
            )
    for first, second in combinations(names, 2):
        if names[first] == names[second]:
            raise UserError(f"columns: {first} and {second} are both {names[first][0]!r}; each is a column of its own")
    return {plain: header.index(name) for plain, [name] in names.items()}


def _name(row: Sequence[str], header: Sequence[str], index: Mapping[str, int], column: str) -> str:
    """Return the name in a column, empty if the table does not have that; a ValueError if the cell is empty."""
    if column not in index:
        return ""
    name = row[index[column]].strip()
    if not name:
        raise ValueError(f"{header[index[column]]} is empty")
    # Millions of records share a few names.
    return sys.intern(name)


def _value(row: Sequence[str], header: Sequence[str], index: Mapping[str, int], column: str) -> float:
    """Return the number in a column, NaN if it is missing, 0 if the table does not have the column."""
    if column not in index:
        return 0.0
    text = row[index[column]].strip()
    return math.nan if text.lower() in MISSING else finite_number(text, header[index[column]])


def _truth(text: str) -> bool:
    if text.strip().lower() not in TRUTH:
        raise ValueError(f"{TRAINABLE} is {text!r} and neither True nor False")
    return TRUTH[text.strip().lower()]


def require_complete(records: TableRecords, names: Sequence[Sequence[str]], exclude_target: bool) -> None:
    """Raise an error unless every cell is there once, and a source has one performance on a target.

    Args:
        records: The records.
        names: All metrics, sources and targets; one metric without a name in a table without metrics.
        exclude_target: Whether the cell of a target with the source of the same name is not needed.

    Raises:
        UserError: Some cells are missing, given more than once or contradicting.
    """
    indices, shape = records.indices(names), [len(axis) for axis in names]
    counts = np.bincount(np.ravel_multi_index(indices, shape), minlength=math.prod(shape)).reshape(shape)
    scored, needed = np.isfinite(records.scores), np.ones(shape, dtype=bool)
    needed[tuple(axis[scored] for axis in indices)] = False
    if exclude_target:
        needed &= np.array(names[1])[:, None] != np.array(names[2])
    missing = [(names[0][m], names[1][s], names[2][t]) for t, s, m in np.argwhere(needed.T).tolist()]

    # A million records are compared as arrays; only those that are wrong are named.
    repeated = np.flatnonzero(counts[indices] > 1).tolist()
    lines = grouped((records.key(record), records.lines[record]) for record in repeated)
    unknown = {records.key(record)[1:] for record in np.flatnonzero(np.isnan(records.performances)).tolist()}

    hint = "; complete them" + (", or choose complete metrics with metrics" if names[0] != [""] else "")
    _require_none(
        {
            "missing cells": [_cell(key) for key in missing],
            "missing performances": [_pair(pair) for pair in sorted(unknown)],
            "cells given more than once": [
                f"{_cell(key)} on lines {', '.join(map(str, its))}" for key, its in lines.items()
            ],
            "contradicting performances": _contradictions(records, indices[1:], shape[1:]),
        },
        hint if missing else "",
    )


def _contradictions(records: TableRecords, pairs: tuple[Indices, ...], shape: Sequence[int]) -> list[str]:
    """Describe the sources that have several performances on a target; those that are missing do not count."""
    performances, last = np.array(records.performances), np.empty(shape)
    last[pairs] = performances
    differing = np.zeros(shape, dtype=bool)
    differing[tuple(axis[last[pairs] != performances] for axis in pairs)] = True

    values: dict[tuple[str, str], dict[float, int]] = {}
    for record in np.flatnonzero(differing[pairs] & ~np.isnan(performances)).tolist():
        known = values.setdefault(records.key(record)[1:], {})
        known.setdefault(records.performances[record], records.lines[record])
    return [
        f"{_pair(pair)} has {' and '.join(f'{value} on line {line}' for value, line in known.items())}"
        for pair, known in values.items()
        if not all(math.isclose(value, next(iter(known)), rel_tol=SAME_PERFORMANCE) for value in known)
    ]


def _cell(key: Key) -> str:
    return ", ".join(f"{part} {name!r}" for part, name in zip(("metric", "source", "target"), key, strict=True) if name)


def _pair(pair: tuple[str, str]) -> str:
    return f"source {pair[0]!r} on target {pair[1]!r}"


def _require_none(mistakes: Mapping[str, Sequence[str]], hint: str = "") -> None:
    """Raise a UserError of one line, with the first mistakes of every kind, if there are any."""
    listed = []
    for kind, entries in mistakes.items():
        if entries:
            more = f"; and {len(entries) - MOST_NAMED} more" if len(entries) > MOST_NAMED else ""
            listed.append(f"{len(entries)} {kind}: {'; '.join(entries[:MOST_NAMED])}{more}")
    if listed:
        raise UserError(f"table: {'; also '.join(listed)}{hint}")

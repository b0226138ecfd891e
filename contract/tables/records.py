"""The records of a table of scores and performances: their values, one for each cell, and the mistakes in them."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headstart.contract.tables.csv_tables import WARNING, finite_number, read_csv, read_value, require_fields
from headstart.contract.tables.grouping import grouped
from headstart.contract.tables.holes import name_some
from headstart.contract.tables.layout import TRAINABLE, RowReader, TableLayout
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.output.errors import UserError

MOST_NAMED = 3
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
        ranked_by: Its value of the column by which the best row of a cell is chosen, if there is one.
        repeats: Its values of the columns over which rows of a cell are averaged, if there are any.
        own: Data sets that a source comes from.
        classes: Number of classes of targets, where a column says it.
        ignored_columns: Columns that were not needed.
        notes: Sentences on what was done to the rows.
        warnings: Warnings of performances, by source and target.
        own_targets: Targets that are a source's own in a row.
        is_optimistic: Whether the best row of a cell is chosen by the values that are reported.
    """

    axes: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    lines: array[int] = field(default_factory=lambda: array("q"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    performances: array[float] = field(default_factory=lambda: array("d"))
    ranked_by: array[float] = field(default_factory=lambda: array("d"))
    repeats: list[tuple[str, ...]] = field(default_factory=list)
    own: dict[str, set[str]] = field(default_factory=dict)
    classes: dict[str, float] = field(default_factory=dict)
    ignored_columns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: dict[tuple[str, str], str] = field(default_factory=dict)
    own_targets: dict[str, None] = field(default_factory=dict)
    is_optimistic: bool = False

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

    def keep(self, kept: Sequence[int]) -> None:
        """Keep some of the records, by their indices."""
        self.axes = tuple([axis[i] for i in kept] for axis in self.axes)  # type: ignore[assignment]
        self.lines = array("q", [self.lines[i] for i in kept])
        self.scores, self.performances = (array("d", [of[i] for i in kept]) for of in (self.scores, self.performances))


def read_records(
    path: Path, layout: TableLayout, metrics: Sequence[str] | None, with_scores: bool, with_performances: bool
) -> TableRecords:
    """Read the records that count, as `headstart.evaluation.stability.table.read_table` describes them.

    Args:
        path: CSV file.
        layout: How it is read.
        metrics: Names of the metrics that count; all by default.
        with_scores: Whether the file must have metrics and scores.
        with_performances: Whether performances are read from the file; otherwise they are 0.

    Raises:
        UserError: The file cannot be read, a column is missing, or there are wrong entries or no records.
    """
    lines = read_csv("table", path)
    header = next(lines, (1, []))[1]
    reader = RowReader(header, layout, with_scores, with_performances)
    records, wrong, present = TableRecords(is_optimistic=reader.reports_best_by), list[str](), dict[str, None]()
    records.classes.update(layout.classes)
    skipped = set(layout.skip_lines)
    found = 0

    for line, row in lines:
        if line in skipped:
            skipped.discard(line)
            continue
        try:
            require_fields(row, header)
            if reader.counts(row):
                found += 1
                _add(records, reader, row, line, metrics, present)
        except ValueError as error:
            wrong.append(f"line {line}, {error}")

    _require_none({"wrong entries": wrong}, "; mend them, or leave lines out by skip_lines" if wrong else "")
    _require_found(path, layout, metrics, found, present, TRAINABLE in header)
    if skipped:
        raise UserError(f"skip_lines: {min(skipped)} is no line with an entry in {str(path)!r}; lines count from 1")
    records.ignored_columns = [name for name in reader.unused if name not in (TRAINABLE, WARNING)]
    if layout.skip_lines:
        records.notes.append(f"Lines of the table that were left out: {', '.join(map(str, layout.skip_lines))}.")
    if lost := [name for name in records.own_targets if name not in set(records.axes[2])]:
        records.notes.append(f"Left out: targets from which all sources come: {name_some(lost, MOST_NAMED)}.")
    return records


def _add(
    records: TableRecords,
    reader: RowReader,
    row: Sequence[str],
    line: int,
    metrics: Sequence[str] | None,
    present: dict[str, None],
) -> None:
    """Add the records of a row; a ValueError if an entry is wrong."""
    layout = reader.layout
    own, classes = reader.own_target(row), reader.classes(row)
    for metric, source, target, score, performance in reader.cells(row):
        present[metric] = None
        if own:
            records.own.setdefault(source, set()).add(own)
        if classes is not None and records.classes.setdefault(target, classes) != classes:
            # Such a column is not of the target.
            records.classes[target] = math.nan
        is_own = layout.exclude_target and target in (own, source)
        if is_own:
            records.own_targets[target] = None
        if is_own or not (metrics is None or metric in metrics):
            continue

        scored, reached = (
            read_value(score, "score"),
            read_value(performance, "performance", layout.missing_values or ()),
        )
        if reader.best_by is not None:
            records.ranked_by.append(finite_number(row[reader.best_by], str(layout.best_by)))
        if reader.differing:
            records.repeats.append(tuple(row[column].strip() for column in reader.differing))
        metrics_of, sources_of, targets_of = records.axes
        metrics_of.append(metric)
        sources_of.append(source)
        targets_of.append(target)
        records.lines.append(line)
        records.scores.append(scored)
        records.performances.append(reached)
        if reader.warning is not None and row[reader.warning]:
            records.warnings[source, target] = row[reader.warning]


def _require_found(
    path: Path,
    layout: TableLayout,
    metrics: Sequence[str] | None,
    found: int,
    present: Mapping[str, None],
    has_trainable: bool,
) -> None:
    """Raise a UserError if no row counts, or a chosen metric is in none."""
    if not found:
        conditions = [f"{TRAINABLE} = {layout.trainable}"] if has_trainable and TRAINABLE not in layout.where else []
        conditions += [f"{name} = {allowed}" for name, allowed in layout.where.items()]
        condition = f" with {' and '.join(conditions)}" if conditions else ""
        raise UserError(f"table: {str(path)!r} has no rows{condition}; every row is a cell")
    unknown = [name for name in metrics or () if name not in present]
    if unknown:
        known = ", ".join(filter(None, present)) or "none"
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {known}")


def combine_rows(records: TableRecords, layout: TableLayout) -> None:
    """Make one record of the rows of each cell: the best by a column, or their mean."""
    rows: dict[Key, list[int]] = {}
    if layout.best_by is not None or layout.mean_over:
        for record in range(len(records.lines)):
            rows.setdefault(records.key(record), []).append(record)
    if layout.best_by is not None:
        _keep_best(records, rows, layout.best_by)
    elif layout.mean_over:
        _average(records, rows, layout.mean_over)


def _keep_best(records: TableRecords, rows: Mapping[Key, Sequence[int]], column: str) -> None:
    """Keep of each cell the first row with the highest value in a column, of those that have their values."""
    values = np.array([records.scores, records.performances, records.ranked_by])
    values[2, np.isnan(values[:2]).any(axis=0)] = -np.inf
    records.keep([max(its, key=values[2].__getitem__) for its in rows.values()])

    several = [key for key, its in rows.items() if len(its) > 1]
    if several:
        most = max(map(len, rows.values()))
        optimistic = ", which is the reported value itself: an optimistic choice" if records.is_optimistic else ""
        records.notes.append(
            f"{len(several):,} cells are the best of up to {most} rows by {column}, such as {_cell(several[0])}"
            f"{optimistic}."
        )


def _average(records: TableRecords, rows: Mapping[Key, Sequence[int]], columns: Sequence[str]) -> None:
    """Average the scores of each cell, and the performances of each source on a target, over the rows there are."""
    _require_repeats(records, rows)
    reached: dict[tuple[str, str], dict[tuple[str, ...], float]] = {}
    contradicting = []
    for record, repeat in enumerate(records.repeats):
        value, pair = records.performances[record], records.key(record)[1:]
        if math.isnan(value):
            continue
        # The rows of all metrics say the same performance.
        known = reached.setdefault(pair, {}).setdefault(repeat, value)
        if not math.isclose(value, known, rel_tol=SAME_PERFORMANCE):
            contradicting.append(f"{_pair(pair)} has {known} and {value} on line {records.lines[record]}")
    _require_none({"contradicting performances": contradicting})

    for key, its in rows.items():
        scored = [records.scores[record] for record in its if not math.isnan(records.scores[record])]
        performances = reached.get(key[1:], {}).values()
        records.scores[its[0]] = math.fsum(scored) / len(scored) if scored else math.nan
        records.performances[its[0]] = math.fsum(performances) / len(performances) if performances else math.nan
    records.keep([its[0] for its in rows.values()])

    counts = {key: len(its) for key, its in rows.items()}
    if several := [key for key, count in counts.items() if count > 1]:
        fewest, most = min(counts.values()), max(counts.values())
        of_rows = f"{fewest} to {most}" if fewest < most else str(most)
        records.notes.append(
            f"{len(several):,} cells are means over rows that differ in {', '.join(columns)}, of {of_rows} rows each, "
            f"such as {_cell(several[0])}; rows without a value do not count."
        )


def _require_repeats(records: TableRecords, rows: Mapping[Key, Sequence[int]]) -> None:
    """Raise a UserError if rows of a cell do not differ in the columns over which they are averaged."""
    twice = []
    for key, its in rows.items():
        count = Counter(records.repeats[record] for record in its)
        lines = [str(records.lines[record]) for record in its if count[records.repeats[record]] > 1]
        if lines:
            twice.append(f"{_cell(key)} on lines {', '.join(lines)}")
    _require_none({"cells with rows that do not differ in the columns of mean_over": twice})


def find_holes(
    records: TableRecords, names: Sequence[Sequence[str]], own: Flags, missing: str
) -> tuple[Floats, Floats]:
    """Return scores `[m, n, t]` and performances `[n, t]`, NaN where they are missing.

    Args:
        records: The records.
        names: All metrics, sources and targets; one metric without a name in a table without metrics.
        own: Which sources are the target itself or come from it, `[n, t]`: cells that are not needed.
        missing: How to handle holes: `refuse` raises an error.

    Raises:
        UserError: Some cells are given more than once or contradicting, or missing with `refuse`.
    """
    indices, shape = records.indices(names), [len(axis) for axis in names]
    counts = np.bincount(np.ravel_multi_index(indices, shape), minlength=math.prod(shape)).reshape(shape)

    scores, performances = np.full(shape, np.nan), np.full(shape[1:], np.nan)
    scores[indices] = records.scores
    known = ~np.isnan(records.performances)
    performances[tuple(axis[known] for axis in indices[1:])] = np.array(records.performances)[known]

    # A million records are compared as arrays; only those that are wrong are named.
    repeated = np.flatnonzero(counts[indices] > 1).tolist()
    lines = grouped((records.key(record), records.lines[record]) for record in repeated)
    holes: dict[str, Sequence[str]] = {}
    if missing == "refuse":
        gaps = np.argwhere((np.isnan(scores) & ~own).T).tolist()
        unknown = {records.key(record)[1:] for record in np.flatnonzero(~known).tolist()}
        holes = {
            "missing cells": [_cell((names[0][m], names[1][s], names[2][t])) for t, s, m in gaps],
            "missing performances": [_pair(pair) for pair in sorted(unknown)],
        }

    hints = [
        ", or choose metrics that have them" if names[0] != [""] and holes.get("missing cells") else "",
        ", or choose --missing=complete|pairwise",
    ]
    hint = f"; complete them{''.join(hints)}" if any(holes.values()) else ""
    doubled = "; name what they differ in by best_by or mean_over" if lines else ""
    _require_none(
        {
            **holes,
            "cells given more than once": [
                f"{_cell(key)} on lines {', '.join(map(str, its))}" for key, its in lines.items()
            ],
            "contradicting performances": _contradictions(records, indices[1:], shape[1:]),
        },
        hint + doubled,
    )
    return scores, performances


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

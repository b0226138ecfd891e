"""The rows of a table of transferability scores, and what is wrong with them."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from output.errors import UserError

# Names in the plain layout, and in the tables that were released with Agostinelli et al., How stable are
# transferability metrics evaluations?, ECCV 2022.
COLUMNS = {
    "metric": ("metric", "Transferability Metric"),
    "source": ("source", "Source Dataset", "Source Architecture"),
    "target": ("target", "Target Dataset"),
    "score": ("score", "Transferability Metric Score"),
    "performance": ("performance", "Test Mean IoU", "Test Accuracy"),
}
TRAINABLE = "Trainable Backbone"
# What stands in a cell whose value could not be computed.
MISSING = ("", "nan", "inf", "-inf")
MOST_NAMED = 20
SAME_PERFORMANCE = 1e-9


@dataclass(frozen=True)
class Cell:
    """A row of the table.

    Attributes:
        line: Its line in the file, from 1.
        score: Score by the metric, NaN where it is missing.
        performance: Performance of the source on the target, NaN where it is missing.
    """

    line: int
    score: float
    performance: float


Key = tuple[str, str, str]
Cells = dict[Key, list[Cell]]


def finite_number(text: str | None, name: str) -> float:
    """Read a number of a CSV file.

    Args:
        text: What stands there.
        name: Name of the column.

    Returns:
        The number.

    Raises:
        ValueError: It is none, or not finite.
    """
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{name} is {text or ''!r} and not a finite number"
        raise ValueError(msg)
    return number


def read_cells(path: Path, trainable: bool, metrics: Sequence[str] | None) -> tuple[Cells, list[str]]:
    """Read the rows that count.

    Args:
        path: CSV file.
        trainable: Which rows count in a table that has the column `Trainable Backbone`.
        metrics: The metrics whose rows count; all by default.

    Returns:
        Cells by metric, source and target, and the names of the columns that were not needed.

    Raises:
        UserError: The file cannot be read, has a wrong entry, no rows that count or none of one of the metrics.
    """
    cells: Cells = defaultdict(list)
    wrong: list[str] = []
    present: dict[str, None] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            names = {field: _find_column(field, header) for field in COLUMNS}
            for row in reader:
                try:
                    counts = TRAINABLE not in header or _truth(row[TRAINABLE], TRAINABLE) == trainable
                    metric, source, target = (_text(row, names[field]) for field in ("metric", "source", "target"))
                    if counts:
                        present[metric] = None
                    if counts and (metrics is None or metric in metrics):
                        values = [_value(row, names[field]) for field in ("score", "performance")]
                        cells[metric, source, target].append(Cell(reader.line_num, *values))
                except ValueError as error:
                    wrong.append(f"line {reader.line_num}, {error}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"table: {str(path)!r} cannot be read ({error}); give a CSV file in UTF-8"
        raise UserError(msg) from error
    if wrong:
        raise UserError(_list_kinds({"wrong entries": wrong}))
    if not present:
        counted = f" with {TRAINABLE} = {trainable}" if TRAINABLE in header else ""
        msg = f"table: {str(path)!r} has no rows{counted}; every row is a cell"
        raise UserError(msg)
    unknown = [name for name in metrics or () if name not in present]
    if unknown:
        msg = f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {', '.join(present)}"
        raise UserError(msg)
    return dict(cells), [name for name in header if name and name not in {*names.values(), TRAINABLE}]


def require_complete(cells: Cells, needed: Iterable[Key]) -> None:
    """Check that every cell is there once, and that a source has one performance on a target.

    Args:
        cells: What was read.
        needed: Metric, source and target of the cells that are needed.

    Raises:
        UserError: Cells or performances are missing, double or contradicting; named in the text.
    """
    performances: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for (_, source, target), rows in cells.items():
        performances[source, target] += rows
    kinds = {
        "missing cells": [_name(key) for key in needed if all(math.isnan(cell.score) for cell in cells.get(key, ()))],
        "missing performances": [
            f"source {source!r}, target {target!r}"
            for (source, target), rows in performances.items()
            if any(math.isnan(cell.performance) for cell in rows)
        ],
        "cells given more than once": [
            f"{_name(key)} on lines {', '.join(str(cell.line) for cell in rows)}"
            for key, rows in cells.items()
            if len(rows) > 1
        ],
        "contradicting performances": [
            f"source {source!r} on target {target!r} has {different}"
            for (source, target), rows in performances.items()
            if (different := _different_performances(rows))
        ],
    }
    if any(kinds.values()):
        mend = "; complete them, or choose complete metrics with metrics" if kinds["missing cells"] else ""
        raise UserError(_list_kinds(kinds) + mend)


def _different_performances(rows: Collection[Cell]) -> str:
    """Name the performances, each with the first of its lines; nothing where all are the same."""
    different: list[Cell] = []
    for cell in rows:
        known = (math.isclose(cell.performance, other.performance, rel_tol=SAME_PERFORMANCE) for other in different)
        if not math.isnan(cell.performance) and not any(known):
            different.append(cell)
    named = [f"{cell.performance} on line {cell.line}" for cell in different]
    return " and ".join(named) if len(named) > 1 else ""


def _find_column(field: str, header: Sequence[str]) -> str:
    found = [name for name in COLUMNS[field] if name in header]
    if len(found) == 1:
        return found[0]
    allowed = " or ".join(map(repr, COLUMNS[field]))
    what = f"columns {', '.join(map(repr, found))} both" if found else f"no column {allowed}"
    msg = (
        f"table: {what} in the first line, which has {', '.join(map(repr, header)) or 'nothing'}; one of them is needed"
    )
    raise UserError(msg)


def _text(row: dict[str, str], name: str) -> str:
    text = (row[name] or "").strip()
    if not text:
        msg = f"{name} is empty"
        raise ValueError(msg)
    return text


def _value(row: dict[str, str], name: str) -> float:
    text = (row[name] or "").strip()
    return math.nan if text.lower() in MISSING else finite_number(text, name)


def _truth(text: str | None, name: str) -> bool:
    known = {"true": True, "false": False}
    answer = known.get((text or "").strip().lower())
    if answer is None:
        msg = f"{name} is {text or ''!r} and neither True nor False"
        raise ValueError(msg)
    return answer


def _name(key: Key) -> str:
    return "metric {!r}, source {!r}, target {!r}".format(*key)


def _list_kinds(kinds: dict[str, list[str]]) -> str:
    """Name the first of every kind of mistakes, in one line."""
    listed = []
    for what, found in kinds.items():
        more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        listed += [f"{len(found)} {what}: {'; '.join(found[:MOST_NAMED])}{more}"] if found else []
    return f"table: {'; also '.join(listed)}"

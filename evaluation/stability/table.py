"""The table behind a stability study: scores of metrics and performances by source and target, and its mistakes."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.tables import finite_number, read_csv
from metrics.transferability.catalogue import METRICS
from output.errors import UserError

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
# What stands in a cell whose value could not be computed.
MISSING = ("", "nan", "inf", "-inf")
MOST_NAMED = 20
SAME_PERFORMANCE = 1e-9
# The order of the paper's tables, which decides among equals with `ties=last`; other metrics come after these.
PAPER_METRICS = ("gbc", "leep", "nleep", "logme", "hscore")
CONSTANT = "the same score for all sources on every target"


def _plain(name: str) -> str:
    """Give what the spellings of a metric's name, such as `n_leep`, `nleep` and `N-LEEP`, have in common."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


TITLES = {_plain(name): metric.title for name, metric in METRICS.items()}


@dataclass(frozen=True)
class TransferTable:
    """Scores and performances of all sources on all targets.

    Attributes:
        metrics: Names of the m metrics, in the order that decides with `ties=last`.
        sources: Names of the n sources.
        targets: Names of the t targets.
        own: Index of the source that is the target itself and is in no pool for it, `[t]`, -1 where there is none.
        scores: Scores `[m, n, t]`; 0 for a target's own source.
        performances: Performances `[n, t]`; 0 for a target's own source.
        sha256: Digest of the file.
        ignored_columns: Columns of the file that say nothing to the study.
        left_out: Metrics of the file that are not among the m, and why.
    """

    metrics: list[str]
    sources: list[str]
    targets: list[str]
    own: NDArray[np.intp]
    scores: NDArray[np.float64]
    performances: NDArray[np.float64]
    sha256: str
    ignored_columns: list[str]
    left_out: dict[str, str] = field(default_factory=dict)


class _Cell(NamedTuple):
    """A row of the table: its line in the file, from 1, and its values, NaN where they are missing."""

    line: int
    score: float
    performance: float


Key = tuple[str, str, str]
Cells = dict[Key, list[_Cell]]


def metric_title(name: str) -> str:
    """Give the title of a metric that a table calls `nleep` or `n_leep`, N-LEEP; its name if the catalogue has none."""
    return TITLES.get(_plain(name), name)


def read_table(path: Path, trainable: bool, exclude_target: bool, chosen: Sequence[str] | None = None) -> TransferTable:
    """Read and check a table.

    Args:
        path: CSV file in the released layout or the plain one: `metric, source, target, score, performance`.
        trainable: Which rows count in a table that has the column `Trainable Backbone`.
        exclude_target: Whether the cell of a target with the source of the same name is left out.
        chosen: Names of the metrics to read; all by default.

    Returns:
        The table, complete, without metrics that give all sources of every target the same score.

    Raises:
        UserError: The file cannot be read, or it has missing, double, contradicting or wrong cells; named in the text.
    """
    cells, ignored = _read_cells(path, trainable, chosen)
    if exclude_target:
        cells = {key: rows for key, rows in cells.items() if key[1] != key[2]}
    metrics, sources, targets = (list(dict.fromkeys(key[place] for key in cells)) for place in range(3))
    paper = {name: place for place, name in enumerate(PAPER_METRICS)}
    metrics.sort(key=lambda name: paper.get(_plain(name), len(paper)))
    _require_two(metrics, sources)
    needed = ((metric, source, target) for target in targets for source in sources for metric in metrics)
    _require_complete(cells, (key for key in needed if not (exclude_target and key[1] == key[2])))
    scores = np.zeros((len(metrics), len(sources), len(targets)))
    performances = np.zeros((len(sources), len(targets)))
    for (metric, source, target), [cell] in cells.items():
        place = sources.index(source), targets.index(target)
        scores[metrics.index(metric), *place] = cell.score
        performances[place] = cell.performance
    excluded = sources if exclude_target else []
    own = np.array([excluded.index(name) if name in excluded else -1 for name in targets], dtype=np.intp)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    table = TransferTable(metrics, sources, targets, own, scores, performances, digest, ignored)
    return _leave_out_constant(table)


def _require_two(metrics: Sequence[str], sources: Sequence[str], left_out: str = "") -> None:
    if len(metrics) < 2 or len(sources) < 2:
        found = f"{len(metrics)} metrics{left_out} and {len(sources)} sources"
        raise UserError(f"table: {found} found; two or more of each are compared")


def _leave_out_constant(table: TransferTable) -> TransferTable:
    """Leave out metrics that say nothing of the sources, and would leave every experiment without an outcome."""
    others = np.arange(len(table.sources))[:, None] != table.own
    low = np.where(others, table.scores, np.inf).min(axis=1)
    high = np.where(others, table.scores, -np.inf).max(axis=1)
    kept = (low < high).any(axis=1)
    left_out = [name for name, keep in zip(table.metrics, kept, strict=True) if not keep]
    metrics = [name for name, keep in zip(table.metrics, kept, strict=True) if keep]
    _require_two(metrics, table.sources, f" besides {', '.join(left_out)}, {CONSTANT}," if left_out else "")
    return replace(table, metrics=metrics, scores=table.scores[kept], left_out=dict.fromkeys(left_out, CONSTANT))


def _read_cells(path: Path, trainable: bool, metrics: Sequence[str] | None) -> tuple[Cells, list[str]]:
    """Read the cells that count, and the names of the columns that were not needed."""
    cells: Cells = defaultdict(list)
    wrong: list[str] = []
    present: dict[str, None] = {}
    header, lines = read_csv("table", path)
    names = {field: _find_column(field, header) for field in HEADERS}
    for line, row in lines:
        try:
            counts = TRAINABLE not in header or _truth(row[TRAINABLE], TRAINABLE) == trainable
            metric, source, target = (_text(row, names[field]) for field in ("metric", "source", "target"))
            if counts:
                present[metric] = None
            if counts and (metrics is None or metric in metrics):
                values = [_value(row, names[field]) for field in ("score", "performance")]
                cells[metric, source, target].append(_Cell(line, *values))
        except ValueError as error:
            wrong.append(f"line {line}, {error}")
    if wrong:
        raise UserError(_list_kinds({"wrong entries": wrong}))
    if not present:
        counted = f" with {TRAINABLE} = {trainable}" if TRAINABLE in header else ""
        raise UserError(f"table: {str(path)!r} has no rows{counted}; every row is a cell")
    unknown = [name for name in metrics or () if name not in present]
    if unknown:
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {', '.join(present)}")
    return dict(cells), [name for name in header if name and name not in {*names.values(), TRAINABLE}]


def _require_complete(cells: Cells, needed: Iterable[Key]) -> None:
    """Check that every needed cell is there once, and that a source has one performance on a target."""
    performances: dict[tuple[str, str], list[_Cell]] = defaultdict(list)
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


def _different_performances(rows: Collection[_Cell]) -> str:
    """Name the performances, each with the first of its lines; nothing where all are the same."""
    different: list[_Cell] = []
    for cell in rows:
        known = (math.isclose(cell.performance, other.performance, rel_tol=SAME_PERFORMANCE) for other in different)
        if not math.isnan(cell.performance) and not any(known):
            different.append(cell)
    named = [f"{cell.performance} on line {cell.line}" for cell in different]
    return " and ".join(named) if len(named) > 1 else ""


def _find_column(field: str, header: Sequence[str]) -> str:
    found = [name for name in HEADERS[field] if name in header]
    if len(found) == 1:
        return found[0]
    allowed = " or ".join(map(repr, HEADERS[field]))
    what = f"columns {', '.join(map(repr, found))} both" if found else f"no column {allowed}"
    raise UserError(
        f"table: {what} in the first line, which has {', '.join(map(repr, header)) or 'nothing'}; one of them is needed"
    )


def _text(row: dict[str, str], name: str) -> str:
    text = (row[name] or "").strip()
    if not text:
        raise ValueError(f"{name} is empty")
    return text


def _value(row: dict[str, str], name: str) -> float:
    text = (row[name] or "").strip()
    return math.nan if text.lower() in MISSING else finite_number(text, name)


def _truth(text: str | None, name: str) -> bool:
    known = {"true": True, "false": False}
    answer = known.get((text or "").strip().lower())
    if answer is None:
        raise ValueError(f"{name} is {text or ''!r} and neither True nor False")
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

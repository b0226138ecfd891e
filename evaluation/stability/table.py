"""The table behind a stability study: scores of metrics and performances by source and target."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cli.errors import UserError

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

# The order of the paper's tables, which decides among equals with `ties=last`; other metrics come after these.
PAPER_METRICS = {"gbc": "GBC", "leep": "LEEP", "nleep": "N-LEEP", "logme": "LogME", "hscore": "H-score"}
MOST_NAMED = 3
SAME_PERFORMANCE = 1e-9


@dataclass(frozen=True)
class Cell:
    """A row of the table.

    Attributes:
        line: Its line in the file, from 1.
        score: Score by the metric.
        performance: Performance of the source on the target.
    """

    line: int
    score: float
    performance: float


Key = tuple[str, str, str]


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
    """

    metrics: list[str]
    sources: list[str]
    targets: list[str]
    own: NDArray[np.intp]
    scores: NDArray[np.float64]
    performances: NDArray[np.float64]
    sha256: str
    ignored_columns: list[str]


def metric_title(name: str) -> str:
    """Give a metric's name as the paper writes it.

    Args:
        name: The name in the table, such as `nleep` or `n_leep`.

    Returns:
        The paper's name, such as N-LEEP; the name itself for a metric that is not in the paper.
    """
    return PAPER_METRICS.get(_plain(name), name)


def read_table(path: Path, trainable: bool, exclude_target: bool) -> TransferTable:
    """Read and check a table.

    Args:
        path: CSV file in the released layout or the plain one: `metric, source, target, score, performance`.
        trainable: Which rows count in a table that has the column `Trainable Backbone`.
        exclude_target: Whether the cell of a target with the source of the same name is left out.

    Returns:
        The table, complete.

    Raises:
        UserError: The file cannot be read, or it has missing, double, contradicting or wrong cells; named in the text.
    """
    cells, ignored = _read_cells(path, trainable)
    if exclude_target:
        cells = {key: rows for key, rows in cells.items() if key[1] != key[2]}
    _require_single(cells)
    metrics, sources, targets = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    order = list(PAPER_METRICS)
    metrics.sort(key=lambda name: order.index(_plain(name)) if _plain(name) in order else len(order))
    if len(metrics) < 2 or len(sources) < 2:
        msg = f"table: {len(metrics)} metrics and {len(sources)} sources found; two or more of each are compared"
        raise UserError(msg)
    _require_complete(cells, metrics, sources, targets, exclude_target)
    scores = np.zeros((len(metrics), len(sources), len(targets)))
    performances = np.zeros((len(sources), len(targets)))
    for (metric, source, target), [cell] in cells.items():
        place = sources.index(source), targets.index(target)
        scores[metrics.index(metric), *place] = cell.score
        performances[place] = cell.performance
    _require_consistent(cells)
    excluded = sources if exclude_target else []
    own = np.array([excluded.index(name) if name in excluded else -1 for name in targets], dtype=np.intp)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return TransferTable(metrics, sources, targets, own, scores, performances, digest, ignored)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _read_cells(path: Path, trainable: bool) -> tuple[dict[Key, list[Cell]], list[str]]:
    """Read the rows that count, by metric, source and target, and the names of the columns that were not needed."""
    cells: dict[Key, list[Cell]] = defaultdict(list)
    wrong: list[str] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            names = {field: _find_column(field, header) for field in COLUMNS}
            for row in reader:
                try:
                    counts = TRAINABLE not in header or _truth(row[TRAINABLE], TRAINABLE) == trainable
                    key = (_text(row, names["metric"]), _text(row, names["source"]), _text(row, names["target"]))
                    score, performance = (
                        _number(row[names[field]], names[field]) for field in ("score", "performance")
                    )
                except ValueError as error:
                    wrong.append(f"line {reader.line_num}, {error}")
                    continue
                if counts:
                    cells[key].append(Cell(reader.line_num, score, performance))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"table: {str(path)!r} cannot be read ({error}); give a CSV file in UTF-8"
        raise UserError(msg) from error
    if wrong:
        raise UserError(_list_some("wrong entries", wrong))
    if not cells:
        rows = f" with {TRAINABLE} = {trainable}" if TRAINABLE in header else ""
        msg = f"table: {str(path)!r} has no rows{rows}; every row is a cell"
        raise UserError(msg)
    return dict(cells), [name for name in header if name and name not in {*names.values(), TRAINABLE}]


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


def _number(text: str | None, name: str) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{name} is {text or ''!r} and not a finite number"
        raise ValueError(msg)
    return number


def _truth(text: str | None, name: str) -> bool:
    known = {"true": True, "false": False}
    answer = known.get((text or "").strip().lower())
    if answer is None:
        msg = f"{name} is {text or ''!r} and neither True nor False"
        raise ValueError(msg)
    return answer


def _require_single(cells: dict[Key, list[Cell]]) -> None:
    double = [
        f"{_name(key)} on lines {', '.join(str(cell.line) for cell in rows)}"
        for key, rows in cells.items()
        if len(rows) > 1
    ]
    if double:
        raise UserError(_list_some("cells given more than once", double))


def _require_complete(
    cells: dict[Key, list[Cell]], metrics: list[str], sources: list[str], targets: list[str], exclude_target: bool
) -> None:
    missing = [
        _name((metric, source, target))
        for target in targets
        for source in sources
        for metric in metrics
        if (metric, source, target) not in cells and not (exclude_target and source == target)
    ]
    if missing:
        raise UserError(_list_some("missing cells", missing))


def _require_consistent(cells: dict[Key, list[Cell]]) -> None:
    """Check that a source's performance on a target is the same in the rows of all metrics."""
    first: dict[tuple[str, str], Cell] = {}
    differing = []
    for (_, source, target), [cell] in cells.items():
        known = first.setdefault((source, target), cell)
        if not math.isclose(known.performance, cell.performance, rel_tol=SAME_PERFORMANCE):
            values = f"{known.performance} on line {known.line} and {cell.performance} on line {cell.line}"
            differing.append(f"source {source!r} on target {target!r} has {values}")
    if differing:
        raise UserError(_list_some("contradicting performances", differing))


def _name(key: Key) -> str:
    return "metric {!r}, source {!r}, target {!r}".format(*key)


def _list_some(what: str, found: Iterable[str]) -> str:
    found = list(found)
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"table: {len(found)} {what}: {'; '.join(found[:MOST_NAMED])}{more}"

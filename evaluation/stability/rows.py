"""The rows of a table of scores and performances: which columns they are in, under whatever names, and their values."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.tables import finite_number, read_csv, require_fields
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
SCORED = ("metric", "score")
TRAINABLE = "Trainable Backbone"
# What stands in a cell whose value could not be computed.
MISSING = ("", "nan", "inf", "-inf")
MOST_NAMED = 20


@dataclass
class Rows:
    """The rows that count, a number for each in every column.

    Attributes:
        names: Names of the metrics, sources and targets, in the order in which they come; without metrics one that has
            no name.
        keys: Places of the metric, source and target among the names, three for each row.
        lines: Lines in the file, from 1.
        scores: Scores, NaN where they are missing.
        performances: Performances, NaN where they are missing.
        ignored: Columns that were not needed.
    """

    names: tuple[dict[str, int], dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}, {}))
    keys: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    performances: array[float] = field(default_factory=lambda: array("d"))
    ignored: list[str] = field(default_factory=list)

    def add(self, line: int, key: Sequence[str], score: float, performance: float) -> None:
        """Add a row by the names of its metric, source and target."""
        self.keys.extend([known.setdefault(name, len(known)) for known, name in zip(self.names, key, strict=True)])
        self.lines.append(line)
        self.scores.append(score)
        self.performances.append(performance)

    def take_performances(self, known: Mapping[tuple[str, str], float]) -> None:
        """Put performances by source and target in place of those of the rows, NaN where there is none."""
        sources, targets = map(list, self.names[1:])
        pairs = zip(self.keys[1::3], self.keys[2::3], strict=True)
        self.performances = array("d", (known.get((sources[at], targets[to]), math.nan) for at, to in pairs))

    def places(self) -> NDArray[np.int64]:
        """Give the places of the metric, source and target of each row, `[3, rows]`."""
        return np.array(self.keys, dtype=np.int64).reshape(-1, 3).T


def read_rows(
    path: Path,
    trainable: bool,
    exclude_target: bool,
    chosen: Sequence[str] | None,
    columns: Mapping[str, str] | None,
    scored: bool,
    performed: bool = True,
) -> Rows:
    """Read the rows that count; what these are is said by `headstart.evaluation.stability.table.read_table`.

    Args:
        path: CSV file.
        trainable: Which rows count in a table that has the column `Trainable Backbone`.
        exclude_target: Whether rows of a target with the source of the same name do not count.
        chosen: Names of the metrics that count; all by default.
        columns: Names of columns in the file, by those of the plain layout.
        scored: Whether the file must have metrics and scores.
        performed: Whether performances are read from the file; 0 stands for them where they are not.

    Raises:
        UserError: The file cannot be read, a column is missing, or there are wrong entries or no rows.
    """
    lines = read_csv("table", path)
    header = next(lines, (1, []))[1]
    at, found = _find_columns(header, columns or {}, scored, performed), Rows()
    counted = header.index(TRAINABLE) if TRAINABLE in header else None
    wanted, present, wrong = None if chosen is None else frozenset(chosen), dict[str, None](), list[str]()
    for line, row in lines:
        try:
            require_fields(row, header)
            key = [
                _text(row[at[name]], header[at[name]]) if name in at else "" for name in ("metric", "source", "target")
            ]
            if counted is not None and _truth(row[counted]) != trainable:
                continue
            present[key[0]] = None
            if (wanted is None or key[0] in wanted) and not (exclude_target and key[1] == key[2]):
                values = [
                    _value(row[at[name]], header[at[name]]) if name in at else 0.0 for name in ("score", "performance")
                ]
                found.add(line, key, *values)
        except ValueError as error:
            wrong.append(f"line {line}, {error}")
    if wrong:
        raise UserError(list_kinds({"wrong entries": (len(wrong), wrong)}))
    if not present:
        rows = f" with {TRAINABLE} = {trainable}" if counted is not None else ""
        raise UserError(f"table: {str(path)!r} has no rows{rows}; every row is a cell")
    unknown = [name for name in chosen or () if name not in present]
    if unknown:
        there = ", ".join(filter(None, present)) or "none"
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {there}")
    used = {*at.values(), counted}
    found.ignored = [name for place, name in enumerate(header) if name and place not in used]
    return found


def _find_columns(header: Sequence[str], columns: Mapping[str, str], scored: bool, performed: bool) -> dict[str, int]:
    """Find the places of the columns by their names in the plain layout."""
    unknown = [name for name in columns if name not in HEADERS]
    if unknown:
        raise UserError(f"columns: {', '.join(map(repr, unknown))} given; there are {', '.join(HEADERS)}")
    for plain, name in columns.items():
        if name not in header:
            raise UserError(f"columns: {plain} is to be {name!r}, but the first line has {_list(header)}")
    places: dict[str, int] = {}
    bare = not scored and not any(_candidates(name, header, columns) for name in SCORED)
    for plain in HEADERS:
        if (bare and plain in SCORED) or (plain == "performance" and not performed):
            continue
        name = _find_column(plain, _candidates(plain, header, columns), header)
        same = [other for other, place in places.items() if header[place] == name]
        if same:
            raise UserError(f"columns: {same[0]} and {plain} are both {name!r}; each is a column of its own")
        places[plain] = header.index(name)
    return places


def _candidates(plain: str, header: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """Give the names in the header by which a column may be called."""
    allowed = [columns[plain]] if plain in columns else HEADERS[plain]
    return [name for name in header if name in allowed]


def _find_column(plain: str, found: Sequence[str], header: Sequence[str]) -> str:
    if len(found) == 1:
        return found[0]
    allowed = " or ".join(map(repr, HEADERS[plain]))
    what = f"columns {', '.join(map(repr, found))} both" if found else f"no column {allowed}"
    raise UserError(
        f"table: {what} in the first line, which has {_list(header)}; one of them is needed, or its name by columns"
    )


def _list(header: Sequence[str]) -> str:
    return ", ".join(map(repr, header)) or "nothing"


def _text(text: str, name: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError(f"{name} is empty")
    return text


def _value(text: str, name: str) -> float:
    text = text.strip()
    return math.nan if text.lower() in MISSING else finite_number(text, name)


def _truth(text: str) -> bool:
    known = {"true": True, "false": False}
    answer = known.get(text.strip().lower())
    if answer is None:
        raise ValueError(f"{TRAINABLE} is {text!r} and neither True nor False")
    return answer


def list_kinds(kinds: Mapping[str, tuple[int, Iterable[str]]]) -> str:
    """Name the first of every kind of mistakes, of which there are so many, in one line."""
    listed = []
    for what, (count, found) in kinds.items():
        more = f"; and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
        listed += [f"{count} {what}: {'; '.join(islice(found, MOST_NAMED))}{more}"] if count else []
    return f"table: {'; also '.join(listed)}"

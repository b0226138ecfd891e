"""How the rows and columns of a table file become cells: a metric, a source and a target with their values."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from headstart.contract.tables.csv_tables import WARNING, finite_number
from headstart.output.errors import UserError

# Names in the plain layout, and in the tables that were released with Agostinelli et al., How stable are
# transferability metrics evaluations?, ECCV 2022.
HEADERS = {
    "metric": ("metric", "Transferability Metric"),
    "source": ("source", "Source Dataset", "Source Architecture"),
    "target": ("target", "Target Dataset"),
    "score": ("score", "Transferability Metric Score"),
    "performance": ("performance", "Test Mean IoU", "Test Accuracy"),
    "classes": ("classes", "num_classes", "n_classes", "num_labels"),
}
TRAINABLE = "Trainable Backbone"
TRUTH = {"true": True, "false": False}
# In a list of columns, all columns between its neighbours.
BETWEEN = "..."
# Between the parts of a name that several columns make.
JOINT = ", "

Missing = Literal["refuse", "complete", "pairwise"]
Columns = Mapping[str, str | list[str]]
# Texts of a metric, source, target, score and performance; the last two are empty where the file has none.
Cell = tuple[str, str, str, str | None, str | None]


@dataclass(frozen=True)
class TableLayout:
    """How a table file is read; `headstart.evaluation.table_results.TableResults` says what each option means."""

    columns: Columns = field(default_factory=dict)
    target_columns: Sequence[str] = ()
    metric_columns: Sequence[str] = ()
    own: str | None = None
    where: Mapping[str, str | list[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    best_by: str | None = None
    mean_over: Sequence[str] = ()
    skip_lines: Sequence[int] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    missing_values: Sequence[float] | None = None
    missing: Missing = "refuse"
    performance_columns: Mapping[str, str] = field(default_factory=dict)
    performance_where: Mapping[str, str | list[str]] = field(default_factory=dict)
    exclude_target: bool = True
    trainable: bool = True


class RowReader:
    """Turns the rows of one file into cells.

    Args:
        header: The names of the columns.
        layout: How the file is read.
        with_scores: Whether the file must have metrics and scores.
        with_performances: Whether performances are read from the file.

    Attributes:
        unused: Columns that are not needed.

    Raises:
        UserError: A column is missing, named twice, or given for two things.
    """

    def __init__(self, header: Sequence[str], layout: TableLayout, with_scores: bool, with_performances: bool) -> None:
        self.header, self.layout = [name.strip() for name in header], layout
        header = self.header
        listed = {
            option: _expand(option, getattr(layout, option), header)
            for option in ("target_columns", "metric_columns", "mean_over")
        }
        self.melted = [(name, header.index(name)) for name in listed["target_columns"] + listed["metric_columns"]]
        self.index = self._find_columns(with_scores, with_performances)
        self.differing = [header.index(name) for name in listed["mean_over"]]
        self.best_by = None if layout.best_by is None else _column("best_by", layout.best_by, header)
        self.own = None if layout.own is None else _column("own", layout.own, header)
        self.conditions = self._conditions()
        by_trainable = TRAINABLE in header and TRAINABLE not in layout.where
        self.trainable = header.index(TRAINABLE) if by_trainable else None
        self.warning = header.index(WARNING) if WARNING in header else None

        used = {column for columns in self.index.values() for column in columns}
        used |= {column for _, column in self.melted} | {*self.differing, *self.conditions}
        used |= {column for column in (self.best_by, self.own) if column is not None}
        self.unused = [name for column, name in enumerate(header) if name and column not in used]

    def _find_columns(self, with_scores: bool, with_performances: bool) -> dict[str, list[int]]:
        """Return the indices of the columns of each needed name of the plain layout."""
        header, layout = self.header, self.layout
        listed = ", ".join(map(repr, header)) or "nothing"
        unknown = [name for name in layout.columns if name not in HEADERS]
        if unknown:
            raise UserError(f"columns: {', '.join(map(repr, unknown))} given; there are {', '.join(HEADERS)}")
        given = {plain: [names] if isinstance(names, str) else names for plain, names in layout.columns.items()}
        for plain, names in given.items():
            if not names:
                raise UserError(f"columns: {plain} is to be [], no column; name one or more")
            for name in names:
                if header.count(name) != 1:
                    problem = "has it twice" if name in header else f"has {listed}"
                    raise UserError(f"columns: {plain} is to be {name!r}, but the first line {problem}")

        found = {
            plain: [[name] for name in header if name in spellings] if plain not in given else [given[plain]]
            for plain, spellings in HEADERS.items()
        }
        for plain in self._not_needed(found, with_scores, with_performances):
            del found[plain]

        for plain, candidates in found.items():
            if len(candidates) != 1:
                allowed = " or ".join(map(repr, HEADERS[plain]))
                both = ", ".join(repr(name) for [name] in candidates)
                problem = f"columns {both} both" if candidates else f"no column {allowed}"
                raise UserError(
                    f"table: {problem} in the first line, which has {listed}; one of them is needed, or its name by "
                    "columns"
                )
        for first, second in combinations(found, 2):
            if shared := set(found[first][0]) & set(found[second][0]):
                raise UserError(
                    f"columns: {first} and {second} are both {sorted(shared)[0]!r}; each is a column of its own"
                )
        return {plain: [header.index(name) for name in names] for plain, [names] in found.items()}

    def _not_needed(
        self, found: Mapping[str, Sequence[object]], with_scores: bool, with_performances: bool
    ) -> list[str]:
        """Return the names of the plain layout that the file does not have to have."""
        layout = self.layout
        if layout.target_columns and layout.metric_columns:
            raise UserError("target_columns, metric_columns: both given; a table is wide in one of them")
        no_classes = [] if len(found["classes"]) == 1 else ["classes"]
        if layout.metric_columns:
            return ["metric", "score", *no_classes, *([] if with_performances else ["performance"])]
        if layout.target_columns:
            # The cells are scores in a table of metrics, else performances.
            has_metrics = bool(found["metric"])
            if has_metrics and with_performances:
                raise UserError(
                    "target_columns: the table has metrics, so that its cells are scores; give --performances, too"
                )
            if with_scores and not has_metrics:
                raise UserError(
                    "target_columns: the table has no column of metrics, so that its cells are performances, and this "
                    "command needs scores"
                )
            return ["target", "score", "performance", "classes", *([] if has_metrics else ["metric"])]
        without_scores = not (with_scores or found["metric"] or found["score"])
        scores = ["metric", "score"] if without_scores else []
        return [*([] if with_performances else ["performance"]), *scores, *no_classes]

    def _conditions(self) -> dict[int, tuple[str, ...]]:
        """Return the texts that columns may have in the rows that count, by the index of the column."""
        conditions = {}
        for name, allowed in self.layout.where.items():
            column = _column("where", name, self.header)
            conditions[column] = tuple(map(str, [allowed] if isinstance(allowed, str) else allowed))
        return conditions

    def counts(self, row: Sequence[str]) -> bool:
        """Whether a row counts; a ValueError if its truth value is neither true nor false."""
        if self.trainable is not None:
            text = row[self.trainable]
            if text.strip().lower() not in TRUTH:
                raise ValueError(f"{TRAINABLE} is {text!r} and neither True nor False")
            if TRUTH[text.strip().lower()] != self.layout.trainable:
                return False
        return all(row[column].strip() in allowed for column, allowed in self.conditions.items())

    def cells(self, row: Sequence[str]) -> list[Cell]:
        """Return the cells of a row; a ValueError if a name is empty."""
        metric, source, target = self._name(row, "metric"), self._name(row, "source"), self._name(row, "target")
        score = row[self.index["score"][0]] if "score" in self.index else None
        performance = row[self.index["performance"][0]] if "performance" in self.index else None
        if not self.melted:
            return [(metric, source, target, score, performance)]
        if self.layout.metric_columns:
            return [(self._named(name), source, target, row[at], performance) for name, at in self.melted]
        if "metric" in self.index:
            return [(metric, source, self._named(name), row[at], None) for name, at in self.melted]
        return [("", source, self._named(name), None, row[at]) for name, at in self.melted]

    def _name(self, row: Sequence[str], plain: str) -> str:
        """Return the name in one or more columns, empty if the file does not have it."""
        columns = self.index.get(plain)
        if columns is None:
            return ""
        name = row[columns[0]].strip() if len(columns) == 1 else JOINT.join(row[column].strip() for column in columns)
        if not name or (len(columns) > 1 and not all(row[column].strip() for column in columns)):
            empty = next(self.header[column] for column in columns if not row[column].strip())
            raise ValueError(f"{empty} is empty")
        return self._named(name)

    def _named(self, name: str) -> str:
        # Millions of records share a few names.
        return sys.intern(self.layout.names.get(name, name))

    def classes(self, row: Sequence[str]) -> float | None:
        """Return the number of classes of a row's target, if a column says it; a ValueError if a named one does not."""
        if "classes" not in self.index:
            return None
        text = row[self.index["classes"][0]].strip()
        # A column that nobody named may hold something else.
        return finite_number(text, "classes") if "classes" in self.layout.columns or text.isdecimal() else None

    @property
    def reports_best_by(self) -> bool:
        """Whether rows are chosen by the very values that are reported."""
        values = [self.index[plain][0] for plain in ("score", "performance") if plain in self.index]
        return self.best_by in values + [column for _, column in self.melted]

    def own_target(self, row: Sequence[str]) -> str:
        """Return the data set that the source of a row comes from; empty if no column says it."""
        return "" if self.own is None else self._named(row[self.own].strip())


def _column(option: str, name: str, header: Sequence[str]) -> int:
    """Return the index of a column; a UserError if the file does not have it, or has it twice."""
    if header.count(name) != 1:
        listed = ", ".join(map(repr, header)) or "nothing"
        problem = "is twice in the first line; it must be there once" if name in header else "is no column of the table"
        raise UserError(f"{option}: {name!r} {problem}; the first line has {listed}")
    return header.index(name)


def _expand(option: str, names: Sequence[str], header: Sequence[str]) -> list[str]:
    """Return the names of columns, with those between its neighbours in place of `...`."""
    expanded: list[str] = []
    for position, name in enumerate(names):
        if name != BETWEEN:
            _column(option, name, header)
            expanded.append(name)
            continue
        if not 0 < position < len(names) - 1:
            raise UserError(f"{option}: {BETWEEN!r} is first or last; it stands between two columns")
        first, last = (_column(option, names[beside], header) for beside in (position - 1, position + 1))
        if last <= first:
            raise UserError(
                f"{option}: {names[position - 1]!r} comes after {names[position + 1]!r} in the first line; give the "
                f"columns on both sides of {BETWEEN!r} in their order"
            )
        expanded += header[first + 1 : last]
    if len(set(expanded)) < len(expanded):
        raise UserError(f"{option}: a column is named twice; name each once")
    return expanded

"""The rows of a table file, one for each metric, source and target, whatever its layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from headstart.contract.tables.csv_tables import number_of, read_frame, refuse
from headstart.contract.tables.table import is_metric
from headstart.metrics.arrays import Flags
from headstart.output.errors import UserError

# Names in the plain layout, and in the tables that were released with Agostinelli et al., How stable are
# transferability metrics evaluations?, ECCV 2022.
HEADERS = {
    "metric": ("metric", "Transferability Metric"),
    "source": ("source", "Source Dataset", "Source Architecture"),
    "target": ("target", "Target Dataset"),
    "score": ("score", "Transferability Metric Score"),
    "performance": ("performance", "Test Mean IoU", "Test Accuracy"),
    "own": ("own",),
    "warning": ("warning",),
}
NEEDED = ("source", "target", "score", "performance")
# In the released tables: whether the whole network was fine-tuned, or the head alone.
TRAINABLE = "Trainable Backbone"
# Between the parts of a name that several columns make.
JOINT = ", "
# Texts of scores and performances that could not be computed.
MISSING = ("", "na", "n/a", "none", "null", "-", "nan", "inf", "-inf", "+inf", "infinity", "-infinity")

Missing = Literal["refuse", "complete", "pairwise"]
Value = str | int | float | bool


@dataclass(frozen=True)
class TableLayout:
    """How table files are read; `headstart.evaluation.table_results.TableResults` says what each option means."""

    columns: Mapping[str, str | list[str]] = field(default_factory=dict)
    where: Mapping[str, Value | list[Value]] = field(default_factory=dict)
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    missing_value: float | None = None
    missing: Missing = "refuse"
    exclude_target: bool = True


class TableRows(NamedTuple):
    """The rows of a file that count.

    Attributes:
        rows: Columns `metric` (empty in a table without metrics), `source`, `target`, `score`, `performance`, `own`,
            `warning` and `row`. Scores and performances are NaN where they are missing.
        ignored_columns: Columns of the file that are not needed.
        notes: Sentences on rows that are left out.
    """

    rows: pd.DataFrame
    ignored_columns: list[str]
    notes: list[str]


def read_rows(path: Path, target: str, layout: TableLayout, chosen: Sequence[str] | None) -> TableRows:
    """Read the rows of a file.

    A file with columns of metrics and scores is long: each row has the score of one metric. Any other file is wide:
    metrics are columns, the chosen ones or those whose names are in the catalogue.

    Args:
        path: CSV or Parquet file.
        target: The target of all rows; empty if a column names it.
        layout: How the file is read.
        chosen: Names of the metrics to read; all by default.

    Raises:
        UserError: The file cannot be read, lacks a column or a metric, has no rows that count, or wrong entries.
    """
    frame = read_frame("table", path)
    columns = _find_columns(path, list(frame.columns), layout.columns, target)
    frame, notes = _select(path, frame, layout.where)
    rows = frame[[]].assign(row=[f"{path.name} {row}" if target else str(row) for row in frame.index])
    for plain, names in columns.items():
        rows[plain] = frame[names[0]].str.cat([frame[name] for name in names[1:]], sep=JOINT)
    if target:
        others = {name for column in set(frame.columns) & {*HEADERS["target"]} for name in frame[column]} - {target}
        if others:
            raise UserError(f"table: {path.name!r} is the file of {target!r}, but has the target {min(others)!r}, too")
        rows["target"] = target
    for missing in {"own", "warning"} - set(columns):
        rows[missing] = ""
    _refuse_empty(rows, frame, columns)

    used = {name for names in columns.values() for name in names} | {TRAINABLE, *layout.where}
    if "metric" in columns:
        rows = _choose(rows, chosen)
    else:
        rows = _melt(rows, frame, [name for name in frame.columns if name not in used], chosen)
        used |= set(rows["metric"])
    return TableRows(_with_numbers(rows), [name for name in frame.columns if name and name not in used], notes)


def _find_columns(
    path: Path, header: Sequence[str], given: Mapping[str, str | list[str]], target: str
) -> dict[str, list[str]]:
    """Return the columns of each name of the plain layout that the file has."""
    listed = f"{str(path)!r} has {', '.join(map(repr, header)) or 'nothing'}"
    if unknown := [name for name in given if name not in HEADERS]:
        raise UserError(f"columns: {', '.join(map(repr, unknown))} given; there are {', '.join(HEADERS)}")
    columns = {plain: [names] if isinstance(names, str) else list(names) for plain, names in given.items()}
    named = {name for names in columns.values() for name in names}
    for plain, names in columns.items():
        if not names or not set(names) <= set(header):
            raise UserError(f"columns: {plain} is to be {', '.join(map(repr, names)) or 'no column'}, but {listed}")

    for plain, spellings in HEADERS.items():
        spelled = [name for name in header if name in spellings and name not in named]
        if plain not in columns and len(spelled) > 1:
            raise UserError(f"table: {' and '.join(map(repr, spelled))} both name the {plain}; choose one by columns")
        if plain not in columns and spelled:
            columns[plain] = spelled

    # The file of a target needs no column of targets, and a wide one none of scores.
    not_needed = {"target"} if target else set()
    not_needed |= set() if "metric" in columns else {"score"}
    for plain in NEEDED:
        if plain not in columns and plain not in not_needed:
            hint = ", or give a mapping of targets to files" if plain == "target" else ""
            raise UserError(f"table: no column {plain!r}; {listed}; name it by columns{hint}")
    return {plain: names for plain, names in columns.items() if plain not in not_needed}


def _select(
    path: Path, frame: pd.DataFrame, where: Mapping[str, Value | list[Value]]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows with the given values of columns, and a sentence that says how many there are."""
    conditions = {name: list(map(str, its)) if isinstance(its, list) else [str(its)] for name, its in where.items()}
    if TRAINABLE in frame.columns:
        conditions.setdefault(TRAINABLE, ["True"])
    kept = np.ones(len(frame), dtype=np.bool_)
    for name, values in conditions.items():
        if name not in frame.columns:
            raise UserError(f"where: {name!r} is no column of {str(path)!r}, which has {', '.join(frame.columns)}")
        kept &= _matches(frame[name], values)

    condition = " and ".join(f"{name} = {' or '.join(values)}" for name, values in conditions.items())
    if not kept.any():
        raise UserError(f"table: {str(path)!r} has no rows{f' with {condition}' if condition else ''}")
    left_out = int((~kept).sum())
    note = f"{left_out:,} of {len(frame):,} rows of {path.name} are left out, as they do not have {condition}."
    return frame[kept], [note] * bool(left_out)


def _matches(texts: pd.Series[str], values: Sequence[str]) -> Flags:
    """Return which texts are one of the values, or the same number or truth value as one of them."""
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").dropna()
    truths = [value.lower() for value in values if value.lower() in ("true", "false")]
    same = texts.isin(values) | texts.str.lower().isin(truths) | pd.to_numeric(texts, errors="coerce").isin(numbers)
    return np.asarray(same, dtype=np.bool_)


def _refuse_empty(rows: pd.DataFrame, frame: pd.DataFrame, columns: Mapping[str, Sequence[str]]) -> None:
    empty = []
    for plain in ("metric", "source", "target"):
        lacks = (frame[columns.get(plain, [])] == "").any(axis=1)
        empty += [f"row {row}, {plain} is empty" for row in rows["row"][lacks]]
    refuse({"wrong entries": empty})


def _choose(rows: pd.DataFrame, chosen: Sequence[str] | None) -> pd.DataFrame:
    """Return the rows of the chosen metrics of a long table."""
    if chosen is None:
        return rows
    _require_metrics(chosen, rows["metric"].drop_duplicates().tolist())
    return rows[rows["metric"].isin(chosen)]


def _melt(rows: pd.DataFrame, frame: pd.DataFrame, others: Sequence[str], chosen: Sequence[str] | None) -> pd.DataFrame:
    """Return the rows of a wide table once for each metric with its scores, or once with 0 if it has no metrics."""
    if chosen is not None:
        _require_metrics(chosen, others)
    metrics = [name for name in others if is_metric(name)] if chosen is None else chosen
    if not metrics:
        return rows.assign(metric="", score="0")
    return pd.concat([rows.assign(metric=name, score=frame[name]) for name in metrics])


def _require_metrics(chosen: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [name for name in chosen if name not in known]:
        listed = ", ".join(filter(None, known)) or "none"
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {listed}")


def _with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with numbers in place of the texts of scores and performances."""
    numbers, wrong = {}, []
    for name in ("score", "performance"):
        is_missing = rows[name].str.lower().isin(MISSING)
        numbers[name] = rows[name].where(~is_missing, "nan").map(number_of).astype(np.float64)
        mistaken = ~np.isfinite(numbers[name]) & ~is_missing
        wrong += (rows["row"] + f", {name} is " + rows[name].map(repr) + " and not a finite number")[mistaken].tolist()
    # A row of a wide table has its performance once for each metric.
    refuse({"wrong entries": [*dict.fromkeys(f"row {text}" for text in wrong)]})
    return rows.assign(**numbers)

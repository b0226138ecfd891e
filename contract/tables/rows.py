"""Read a table file in wide or long format to rows in long format: one for each metric, source and target."""

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

# Column names by key: the key, then names in the tables that were released with Agostinelli et al., How
# stable are transferability metrics evaluations?, ECCV 2022.
HEADERS = {
    "metric": ("metric", "Transferability Metric"),
    "source": ("source", "Source Dataset", "Source Architecture"),
    "target": ("target", "Target Dataset"),
    "score": ("score", "Transferability Metric Score"),
    "performance": ("performance", "Test Mean IoU", "Test Accuracy"),
    "own": ("own",),
    "warning": ("warning",),
}
REQUIRED = ("source", "target", "score", "performance")
# In the released tables: whether the whole network was fine-tuned, or the head alone.
TRAINABLE = "Trainable Backbone"
# Separator in a name that is joined from several columns.
SEPARATOR = ", "
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
    """The rows that are read from a file.

    Attributes:
        rows: Columns `metric` (empty in a table without metrics), `source`, `target`, `score`, `performance`, `own`,
            `warning` and `row`. Scores and performances are NaN where they are missing.
        ignored_columns: Columns of the file that are not needed.
        notes: Sentences about rows that are left out.
    """

    rows: pd.DataFrame
    ignored_columns: list[str]
    notes: list[str]


def read_rows(path: Path, target: str, layout: TableLayout, wanted: Sequence[str] | None) -> TableRows:
    """Read the rows of a file.

    A file with the columns metric and score is long: a row has the score of one metric. Any other file is wide: metrics
    are columns.

    Args:
        path: CSV or Parquet file.
        target: The target of all rows; empty if a column names it.
        layout: How the file is read.
        wanted: Names of the metrics to read. None reads all metrics of a long file, and of a wide file the columns with
            the name of a metric in the catalogue.

    Raises:
        UserError: The file cannot be read, lacks a column or a metric, or has wrong entries. No row fulfils `where`.
    """
    frame = read_frame("table", path)
    columns = _find_columns(path, list(frame.columns), layout.columns, target)
    frame, notes = _select(path, frame, layout.where)
    rows = frame[[]].assign(row=[f"{path.name} {row}" if target else str(row) for row in frame.index])
    for key, names in columns.items():
        rows[key] = frame[names[0]].str.cat([frame[name] for name in names[1:]], sep=SEPARATOR)
    if target:
        others = {name for column in set(frame.columns) & {*HEADERS["target"]} for name in frame[column]} - {target}
        if others:
            raise UserError(f"table: {path.name!r} is the file of {target!r}, but has the target {min(others)!r}, too")
        rows["target"] = target
    for optional in {"own", "warning"} - set(columns):
        rows[optional] = ""
    _refuse_empty(rows, frame, columns)

    used = {name for names in columns.values() for name in names} | {TRAINABLE, *layout.where}
    if "metric" in columns:
        rows = _filter_metrics(rows, wanted)
    else:
        rows = _melt(rows, frame, [name for name in frame.columns if name not in used], wanted)
        used |= set(rows["metric"])
    return TableRows(_with_numbers(rows), [name for name in frame.columns if name and name not in used], notes)


def _find_columns(
    path: Path, header: Sequence[str], explicit: Mapping[str, str | list[str]], target: str
) -> dict[str, list[str]]:
    """Return the columns of the file by key of `HEADERS`."""
    listed = f"{str(path)!r} has {', '.join(map(repr, header)) or 'nothing'}"
    if unknown := [name for name in explicit if name not in HEADERS]:
        raise UserError(f"columns: {', '.join(map(repr, unknown))} given; there are {', '.join(HEADERS)}")
    columns = {key: [names] if isinstance(names, str) else list(names) for key, names in explicit.items()}
    assigned = {name for names in columns.values() for name in names}
    for key, names in columns.items():
        if not names or not set(names) <= set(header):
            raise UserError(f"columns: {key} is to be {', '.join(map(repr, names)) or 'no column'}, but {listed}")

    for key, spellings in HEADERS.items():
        matching = [name for name in header if name in spellings and name not in assigned]
        if key not in columns and len(matching) > 1:
            raise UserError(f"table: {' and '.join(map(repr, matching))} both name the {key}; choose one by columns")
        if key not in columns and matching:
            columns[key] = matching

    # A file of one target needs no target column, and a wide file no score column.
    not_needed = {"target"} if target else set()
    not_needed |= set() if "metric" in columns else {"score"}
    for key in REQUIRED:
        if key not in columns and key not in not_needed:
            hint = ", or give a mapping of targets to files" if key == "target" else ""
            raise UserError(f"table: no column {key!r}; {listed}; name it by columns{hint}")
    return {key: names for key, names in columns.items() if key not in not_needed}


def _select(
    path: Path, frame: pd.DataFrame, where: Mapping[str, Value | list[Value]]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows that meet the conditions of `where`, and a note on the number of other rows."""
    conditions = {name: list(map(str, value if isinstance(value, list) else [value])) for name, value in where.items()}
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
    return frame[kept], [note] if left_out else []


def _matches(texts: pd.Series[str], values: Sequence[str]) -> Flags:
    """Return which texts are one of the values, or the same number or boolean as one of them."""
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").dropna()
    booleans = [value.lower() for value in values if value.lower() in ("true", "false")]
    same = texts.isin(values) | texts.str.lower().isin(booleans) | pd.to_numeric(texts, errors="coerce").isin(numbers)
    return np.asarray(same, dtype=np.bool_)


def _refuse_empty(rows: pd.DataFrame, frame: pd.DataFrame, columns: Mapping[str, Sequence[str]]) -> None:
    empty = []
    for key in ("metric", "source", "target"):
        lacks = (frame[columns.get(key, [])] == "").any(axis=1)
        empty += [f"row {row}, {key} is empty" for row in rows["row"][lacks]]
    refuse({"wrong entries": empty})


def _filter_metrics(rows: pd.DataFrame, wanted: Sequence[str] | None) -> pd.DataFrame:
    """Return the rows of a long table that belong to the wanted metrics."""
    if wanted is None:
        return rows
    _require_metrics(wanted, rows["metric"].drop_duplicates().tolist())
    return rows[rows["metric"].isin(wanted)]


def _melt(rows: pd.DataFrame, frame: pd.DataFrame, others: Sequence[str], wanted: Sequence[str] | None) -> pd.DataFrame:
    """Convert a wide table to the long format; without metrics, its rows have an empty metric and the score 0."""
    if wanted is not None:
        _require_metrics(wanted, others)
    metrics = [name for name in others if is_metric(name)] if wanted is None else wanted
    if not metrics:
        return rows.assign(metric="", score="0")
    return pd.concat([rows.assign(metric=name, score=frame[name]) for name in metrics])


def _require_metrics(wanted: Sequence[str], available: Sequence[str]) -> None:
    if unknown := [name for name in wanted if name not in available]:
        listed = ", ".join(filter(None, available)) or "none"
        raise UserError(f"metrics: {', '.join(map(repr, unknown))} not in the table; it has {listed}")


def _with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with numbers in place of the texts of scores and performances."""
    numbers, wrong = {}, []
    for name in ("score", "performance"):
        is_missing = rows[name].str.lower().isin(MISSING)
        numbers[name] = rows[name].where(~is_missing, "nan").map(number_of).astype(np.float64)
        is_wrong = ~np.isfinite(numbers[name]) & ~is_missing
        wrong += (rows["row"] + f", {name} is " + rows[name].map(repr) + " and not a finite number")[is_wrong].tolist()
    # In a wide table, a wrong performance is found once for each metric.
    refuse({"wrong entries": [*dict.fromkeys(f"row {text}" for text in wrong)]})
    return rows.assign(**numbers)

"""Reading a table of scores and performances: files in, checked arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from headstart.contract.tables.csv_tables import refuse
from headstart.contract.tables.holes import describe_holes, keep_complete, name_some, usable
from headstart.contract.tables.rows import Missing, TableLayout, read_rows
from headstart.contract.tables.table import TransferTable, in_paper_order
from headstart.metrics.arrays import Flags, Floats
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store.json_digest import digest_of

KEY = ["metric", "source", "target"]
# Rounding errors beyond a bound, relative to it.
ROUNDING = 1e-6
NEGATIVE = (
    "Rel@1 is undefined, and left out, on targets with negative performances: {}. It compares performances that are "
    "counted from 0: give accuracies, or turn losses and errors round into what is 0 at worst, such as 1 - error."
)


def read_table(
    files: Path | Mapping[str, Path],
    layout: TableLayout | None = None,
    chosen: Sequence[str] | None = None,
    minimum: int = 2,
) -> TransferTable:
    """Read and check a table.

    Args:
        files: CSV or Parquet file, or the file of each target. `read_rows` describes their layouts.
        layout: How they are read.
        chosen: Names of the metrics to read; all by default.
        minimum: Metrics that are needed.

    Returns:
        The table, without metrics that score all sources of every target the same, or lack a source that others score.
        It has its holes, if the layout does not refuse them; `without_holes` treats them.

    Raises:
        UserError: A file cannot be read, or has missing, double, contradicting or wrong cells; named in the text.
    """
    layout = layout or TableLayout()
    files = {"": files} if isinstance(files, Path) else files
    if not files:
        raise UserError("table: no file; give one, or a mapping of targets to files")
    rows, ignored, notes = _join(files, layout, chosen)
    origins = rows[["source", "own"]].drop_duplicates()
    if layout.exclude_target:
        rows, lost = _without_own(rows)
        notes += lost
    metrics, sources, targets = (rows[axis].drop_duplicates().tolist() for axis in KEY)
    metrics = in_paper_order(metrics)
    _refuse_double(rows)

    measured = rows.dropna(subset="performance").drop_duplicates(KEY[1:])
    performances = _array(measured.set_index(KEY[1:])["performance"], sources, targets)
    scores = _array(rows.set_index(KEY)["score"], metrics, sources, targets)
    own = _own_targets(origins, sources, targets) & layout.exclude_target

    left_out = _lacking_sources(metrics, sources, scores, minimum)
    kept = [index for index, name in enumerate(metrics) if name not in left_out]
    metrics, scores = [metrics[index] for index in kept], scores[kept]
    if layout.missing == "refuse":
        _refuse_holes((metrics, sources, targets), np.isnan(scores) & ~own, np.isnan(performances) & ~own)

    # A table without metrics has one without a name.
    named = [name for name in metrics if name]
    notes = [*_warnings(rows), *notes]
    about = {"sha256": _digest(files), "ignored_columns": ignored, "left_out": left_out, "notes": notes}
    table = TransferTable.of_arrays(named, sources, targets, scores[: len(named)], performances, own, **about)
    return table.without_constant_metrics().require(minimum)


def _join(
    files: Mapping[str, Path], layout: TableLayout, chosen: Sequence[str] | None
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Return the rows of all files with higher values being better, the columns that are not needed, and the notes."""
    parts = [read_rows(path, target, layout, chosen) for target, path in files.items()]
    rows = pd.concat([part.rows for part in parts], ignore_index=True)
    ignored = list(dict.fromkeys(name for part in parts for name in part.ignored_columns))
    notes = [note for part in parts for note in part.notes]

    if layout.missing_value is not None:
        numbers = ["score", "performance"]
        rows[numbers] = rows[numbers].mask(rows[numbers] == layout.missing_value)
    notes += _out_of_range(rows)

    columns = ["performance", *filter(None, rows["metric"].drop_duplicates())]
    for name, is_better in layout.higher_is_better.items():
        if name not in columns:
            raise UserError(f"higher_is_better: {name!r} given; there are {', '.join(columns)}")

        if not is_better and name == "performance":
            rows["performance"] = -rows["performance"]
        elif not is_better:
            rows["score"] = rows["score"].mask(rows["metric"] == name, -rows["score"])
    return rows, ignored, notes


def _without_own(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows whose source is not the target, nor comes from it, and a sentence on targets that have none."""
    is_own = (rows["target"] == rows["source"]) | (rows["target"] == rows["own"])
    targets = rows["target"].drop_duplicates()
    lost = targets[~targets.isin(rows["target"][~is_own])].tolist()
    note = f"Left out: targets from which all sources come: {name_some(lost)}."
    return rows[~is_own], [note] * bool(lost)


def _out_of_range(rows: pd.DataFrame) -> list[str]:
    """Return a warning about performances outside of 0 to 1, or 0 to 100, where most of them are."""
    measured = rows.dropna(subset="performance").drop_duplicates(["source", "target", "performance"])
    for most in (1, 100):
        outside = measured[(measured["performance"] < 0) | (measured["performance"] > most * (1 + ROUNDING))]
        if outside.empty:
            return []
        if len(outside) < len(measured) / 2:
            first = outside.iloc[0]
            where = f"{first['performance']:g} on row {first['row']} {_cell('', first['source'], first['target'])}"
            return [
                f"WARNING: {len(outside):,} performances are outside of 0 to {most}, where most are, such as {where}. "
                "If they mean a missing one, give missing_value."
            ]
    return []


def _refuse_double(rows: pd.DataFrame) -> None:
    """Raise a UserError if a cell has several rows, or the rows of several metrics contradict in its performance."""
    double = rows[rows.duplicated(KEY, keep=False)].groupby(KEY, sort=False)["row"].agg(", ".join)
    # A row of a wide table has a cell for each metric.
    cells = {(*key[1:], its): f"{_cell(*key)} on rows {its}" for key, its in double.items()}
    refuse({"cells given more than once": list(cells.values())}, "; keep one row of each")

    different = rows.dropna(subset="performance").drop_duplicates(["source", "target", "performance"])
    different = different[different.duplicated(["source", "target"], keep=False)]
    said = different["performance"].astype(str) + " on row " + different["row"]
    pairs = said.groupby([different["source"], different["target"]], sort=False).agg(" and ".join)
    contradicting = [f"{_cell('', *pair)} has {values}" for pair, values in pairs.items()]
    refuse({"contradicting performances": contradicting})


def _cell(metric: str, source: str, target: str) -> str:
    parts = {"metric": metric, "source": source, "target": target}
    return ", ".join(f"{part} {name!r}" for part, name in parts.items() if name)


def _own_targets(origins: pd.DataFrame, sources: Sequence[str], targets: Sequence[str]) -> Flags:
    """Return which sources are the target itself or come from it, `[n, t]`."""
    pairs = pd.MultiIndex.from_product([sources, targets])
    own = pairs.isin(pd.MultiIndex.from_frame(origins)) | (pairs.get_level_values(0) == pairs.get_level_values(1))
    return np.asarray(own, dtype=np.bool_).reshape(len(sources), len(targets))


def _array(values: pd.Series[float], *names: Sequence[str]) -> Floats:
    """Return values by names as an array with an axis for each kind of name, NaN where they are missing."""
    cells = values.reindex(pd.MultiIndex.from_product(names))
    return np.asarray(cells, dtype=np.float64).reshape([len(axis) for axis in names])


def _lacking_sources(metrics: Sequence[str], sources: Sequence[str], scores: Floats, minimum: int) -> dict[str, str]:
    """Return the metrics that have no score at all of a source that most other metrics score, with the reasons."""
    scored = np.isfinite(scores).any(axis=2)
    lacking = ~scored & (scored.sum(axis=0) > (len(metrics) - 1) / 2)
    reasons = {
        name: f"no score of {name_some([sources[i] for i in np.flatnonzero(its).tolist()])}"
        for name, its in zip(metrics, lacking, strict=True)
        if its.any()
    }
    return reasons if len(metrics) - len(reasons) >= max(minimum, 1) else {}


def _refuse_holes(names: tuple[Sequence[str], ...], scores: Flags, performances: Flags) -> None:
    """Raise a UserError if scores `[m, n, t]` or performances `[n, t]` are missing."""
    metrics, sources, targets = names
    gaps = [_cell(metrics[m], sources[n], targets[t]) for t, n, m in np.argwhere(scores.T).tolist()]
    # Without metrics, a row that is not there counts once.
    alone = performances if metrics[0] else performances & ~scores[0]
    unknown = [_cell("", sources[n], targets[t]) for n, t in np.argwhere(alone).tolist()]
    hint = ", or choose metrics that have them" if gaps and metrics[0] else ""
    mistakes = {"missing cells": gaps, "missing performances": unknown}
    refuse(mistakes, f"; complete them{hint}, or choose --missing=complete|pairwise")


def _warnings(rows: pd.DataFrame) -> list[str]:
    """Return the warnings of performances, each once."""
    warned = rows[rows["warning"] != ""].drop_duplicates(["source", "target"], keep="last")
    return [f"WARNING: {row.source} on {row.target}: {row.warning}" for row in warned.itertuples()]


def _digest(files: Mapping[str, Path]) -> str:
    """Return the digest of a file, or one of those of all targets."""
    digests = {target: digest_file(path) for target, path in files.items()}
    return digests[""] if list(digests) == [""] else digest_of(digests)


def without_holes(table: TransferTable, missing: Missing, minimum: int) -> TransferTable:
    """Treat the holes of a table.

    Args:
        table: A table with holes.
        missing: `complete` leaves out sources and targets with holes, `pairwise` those without any cell.
        minimum: Metrics that are needed.

    Returns:
        The table, with a note that says what is left.

    Raises:
        UserError: Too little is left.
    """
    notes, part = list(table.notes), table
    if missing == "complete" and table.holes.any():
        part, note = keep_complete(table)
        notes.append(note)
    kept = part.part(*usable(part)).require(0)
    if kept.holes.any():
        notes.append(describe_holes(table, kept))
    elif idle := sorted(set(part.sources + part.targets) - set(kept.sources + kept.targets)):
        notes.append(f"Left out, as there is nothing to rank: {name_some(idle)}.")

    lowest = zip(kept.targets, kept.performances.min(axis=0), strict=True)
    if negative := [name for name, low in lowest if low < 0]:
        notes.append(NEGATIVE.format(", ".join(negative)))
    return replace(kept, notes=notes).without_constant_metrics().require(minimum)

"""The table behind a stability study or an audit: scores of metrics and performances by source and target, checked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.stability.rows import MOST_NAMED, Rows, list_kinds, read_rows
from headstart.evaluation.tables import read_performances
from headstart.metrics.ranking.static_orders import scores_differ
from headstart.metrics.transferability.catalogue import METRICS
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store.json_digest import digest_of

SAME_PERFORMANCE = 1e-9
# The order of the paper's tables, which decides among equals with `ties=last`; other metrics come after these.
PAPER_METRICS = ("gbc", "leep", "nleep", "logme", "hscore")
CONSTANT = "the same score for all sources on every target"
NEGATIVE = (
    "Rel@1 is undefined, and left out, on targets with negative performances: {}. It compares performances that are "
    "counted from 0: give accuracies, or turn losses and errors round into what is 0 at worst, such as 1 - error."
)

Indices = NDArray[np.int64]


def _plain(name: str) -> str:
    """Give what the spellings of a metric's name, such as `n_leep`, `nleep` and `N-LEEP`, have in common."""
    return re.sub(r"[-_ ]", "", name.lower())


TITLES = {_plain(spelling): metric.title for name, metric in METRICS.items() for spelling in (name, metric.title)}


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
        sha256: Digest of the file, and of that of the performances where there is one.
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

    @property
    def titles(self) -> list[str]:
        """Titles of the metrics, no two of them alike."""
        return metric_titles(self.metrics)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which sources are not the target itself, `[n, t]`."""
        known: NDArray[np.bool_] = np.arange(len(self.sources))[:, None] != self.own
        return known

    def remarks(self) -> list[str]:
        """Say which metrics and columns of the file are left out, and on which targets there is no Rel@1."""
        lines = [f"Left out: {metric} ({reason})." for metric, reason in self.left_out.items()]
        if negative := [name for name, low in zip(self.targets, self.performances.min(axis=0), strict=True) if low < 0]:
            lines.append(NEGATIVE.format(", ".join(negative)))
        if self.ignored_columns:
            lines.append(f"Columns of the table that were not needed: {', '.join(self.ignored_columns)}.")
        return lines


def metric_titles(names: Sequence[str]) -> list[str]:
    """Give the titles of metrics: N-LEEP for what a table calls `nleep`, `n_leep` or `N-LEEP`.

    A metric that the catalogue does not have, by whatever spelling, or that has its title in common with another of
    these, keeps its name.
    """
    titles = [TITLES.get(_plain(name), name) for name in names]
    count = Counter(titles)
    return [title if count[title] == 1 else name for name, title in zip(names, titles, strict=True)]


def read_table(
    path: Path,
    trainable: bool,
    exclude_target: bool,
    chosen: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    least: int = 2,
    performances: str | None = None,
) -> TransferTable:
    """Read and check a table.

    Args:
        path: CSV file in the released layout or the plain one: `metric, source, target, score, performance`.
        trainable: Which rows count in a table that has the column `Trainable Backbone`.
        exclude_target: Whether the cell of a target with the source of the same name is left out.
        chosen: Names of the metrics to read; all by default.
        columns: Names of columns in the file, by those of the plain layout, where they differ.
        least: Metrics that are needed; where none is, the columns `metric` and `score` may both be missing.
        performances: CSV file with the columns source, target and performance, which take the place of the table's own.

    Returns:
        The table, complete, without metrics that give all sources of every target the same score.

    Raises:
        UserError: The file cannot be read, or it has missing, double, contradicting or wrong cells; named in the text.
    """
    rows = read_rows(path, trainable, exclude_target, chosen, columns, scored=least > 0, performed=performances is None)
    digest = digest_file(path)
    if performances is not None:
        rows.take_performances(read_performances(performances, *rows.names[1:]))
        digest = digest_of({"table": digest, "performances": digest_file(Path(performances))})
    names, sources, targets = map(list, rows.names)
    _require(least, [name for name in names if name], sources)
    own = np.array([rows.names[1].get(name, -1) if exclude_target else -1 for name in targets], dtype=np.intp)
    metric, source, target = rows.places()
    paper = {name: place for place, name in enumerate(PAPER_METRICS)}
    order = sorted(range(len(names)), key=lambda place: paper.get(_plain(names[place]), len(paper)))
    _require_complete(rows, own, order)
    scores = np.zeros((len(names), len(sources), len(targets)))
    reached = np.zeros(scores.shape[1:])
    scores[np.argsort(order)[metric], source, target] = rows.scores
    reached[source, target] = rows.performances
    metrics = [names[place] for place in order if names[place]]
    table = TransferTable(metrics, sources, targets, own, scores[: len(metrics)], reached, digest, rows.ignored)
    return _leave_out_constant(table, least)


def _require(least: int, metrics: Sequence[str], sources: Sequence[str], left_out: str = "") -> None:
    if len(metrics) < least or len(sources) < 2:
        found = f"{len(metrics)} metrics{left_out} and {len(sources)} sources"
        needed = ("two or more sources are", "a metric and two or more sources are", "two or more of each are")[least]
        raise UserError(f"table: {found} found; {needed} compared")


def _leave_out_constant(table: TransferTable, least: int) -> TransferTable:
    """Leave out metrics that say nothing of the sources, and would leave every experiment without an outcome."""
    scores = zip(table.scores.transpose(2, 0, 1), table.known.T, strict=True)
    kept = np.any([scores_differ(its[:, here]) for its, here in scores], axis=0)
    left_out = [name for name, keep in zip(table.metrics, kept, strict=True) if not keep]
    metrics = [name for name, keep in zip(table.metrics, kept, strict=True) if keep]
    _require(least, metrics, table.sources, f" besides {', '.join(left_out)}, {CONSTANT}," if left_out else "")
    return replace(table, metrics=metrics, scores=table.scores[kept], left_out=dict.fromkeys(left_out, CONSTANT))


def _require_complete(rows: Rows, own: NDArray[np.intp], order: Sequence[int]) -> None:
    """Check that every needed cell is there once, and that a source has one performance on a target."""
    metric, source, target = rows.places()
    sizes = [len(known) for known in rows.names]
    pairs = source * sizes[2] + target
    cells = metric * (sizes[1] * sizes[2]) + pairs
    scores, performances = np.array(rows.scores), np.array(rows.performances)
    there = np.unique(cells[np.isfinite(scores)])
    missing = sizes[0] * (sizes[1] * sizes[2] - int((own >= 0).sum())) - len(there)
    several, first = _repeated(cells)
    unknown = np.unique(pairs[np.isnan(performances)])
    contrary = _contrary(pairs, performances)
    kinds = {
        "missing cells": (missing, _name_missing(rows, own, order, set(there.tolist()) if missing else set())),
        "missing performances": (len(unknown), (_name_pair(rows, pair) for pair in unknown)),
        "cells given more than once": (
            len(several),
            (
                f"{_name(rows, *rows.places()[:, row])} on lines {_lines(rows, cells == cell)}"
                for cell, row in zip(several, first, strict=True)
            ),
        ),
        "contradicting performances": (
            len(contrary),
            (f"{_name_pair(rows, pair)} has {_different(rows, performances, pairs == pair)}" for pair in contrary),
        ),
    }
    if any(count for count, _ in kinds.values()):
        bare = "" in rows.names[0]
        mend = "; complete them" + ("" if bare else ", or choose complete metrics with metrics") if missing else ""
        raise UserError(list_kinds(kinds) + mend)


def _repeated(cells: Indices) -> tuple[Indices, Indices]:
    """Give the cells that come more than once, and the first row of each, in their order."""
    known, first, count = np.unique(cells, return_index=True, return_counts=True)
    order = np.argsort(first[count > 1])
    return known[count > 1][order], first[count > 1][order]


def _contrary(pairs: Indices, performances: NDArray[np.float64]) -> Indices:
    """Give the pairs of a source and a target, by number, with performances that differ from the first."""
    given = ~np.isnan(performances)
    _, first, inverse = np.unique(pairs[given], return_index=True, return_inverse=True)
    here, reference = performances[given], performances[given][first][inverse]
    far = np.abs(here - reference) > SAME_PERFORMANCE * np.maximum(np.abs(here), np.abs(reference))
    return np.unique(pairs[given][far])


def _different(rows: Rows, performances: NDArray[np.float64], here: NDArray[np.bool_]) -> str:
    """Name the performances of a pair, each with the first of its lines."""
    different: dict[float, int] = {}
    for row in np.flatnonzero(here & ~np.isnan(performances)):
        value = float(performances[row])
        if not any(math.isclose(value, other, rel_tol=SAME_PERFORMANCE) for other in different):
            different[value] = rows.lines[row]
        if len(different) == MOST_NAMED:
            break
    return " and ".join(f"{value} on line {line}" for value, line in different.items())


def _name_missing(rows: Rows, own: NDArray[np.intp], order: Sequence[int], there: set[int]) -> Iterator[str]:
    """Name the cells that are missing, target by target, with the metrics in this order."""
    sizes = [len(known) for known in rows.names]
    for target, source, metric in product(range(sizes[2]), range(sizes[1]), order):
        if source != own[target] and (metric * sizes[1] + source) * sizes[2] + target not in there:
            yield _name(rows, metric, source, target)


def _name(rows: Rows, *places: int) -> str:
    names = [list(known)[place] for known, place in zip(rows.names, places, strict=True)]
    named = zip(("metric", "source", "target"), names, strict=True)
    return ", ".join(f"{what} {name!r}" for what, name in named if name)


def _name_pair(rows: Rows, pair: int) -> str:
    source, target = divmod(int(pair), len(rows.names[2]))
    return f"source {list(rows.names[1])[source]!r} on target {list(rows.names[2])[target]!r}"


def _lines(rows: Rows, here: NDArray[np.bool_]) -> str:
    lines = [rows.lines[row] for row in np.flatnonzero(here)[:MOST_NAMED]]
    return ", ".join(map(str, lines)) + ", …" * (int(here.sum()) > MOST_NAMED)

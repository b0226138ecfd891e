"""The table behind a stability study: scores of metrics and performances by source and target."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.stability.table_rows import read_cells, require_complete
from metrics.transferability.catalogue import METRICS
from output.errors import UserError

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


def metric_title(name: str) -> str:
    """Give a metric's name as reports write it.

    Args:
        name: The name in the table, such as `nleep` or `n_leep`.

    Returns:
        The title, such as N-LEEP; the name itself for a metric that is not in the catalogue.
    """
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
    cells, ignored = read_cells(path, trainable, chosen)
    if exclude_target:
        cells = {key: rows for key, rows in cells.items() if key[1] != key[2]}
    metrics, sources, targets = (list(dict.fromkeys(key[place] for key in cells)) for place in range(3))
    paper = {name: place for place, name in enumerate(PAPER_METRICS)}
    metrics.sort(key=lambda name: paper.get(_plain(name), len(paper)))
    _require_two(metrics, sources)
    needed = ((metric, source, target) for target in targets for source in sources for metric in metrics)
    require_complete(cells, (key for key in needed if not (exclude_target and key[1] == key[2])))
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
        msg = f"table: {found} found; two or more of each are compared"
        raise UserError(msg)


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

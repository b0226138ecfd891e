"""The table of a stability study or an audit: scores of metrics and performances by source and target, checked."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headstart.evaluation.stability.table_records import read_records, require_complete
from headstart.evaluation.tables import read_performances
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.static_orders import scores_differ
from headstart.metrics.transferability.catalogue import METRICS
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store.json_digest import digest_of

# The order of the paper's tables, which decides between tied metrics with `ties=last`; other metrics come later.
PAPER_ORDER = {"gbc": 0, "leep": 1, "nleep": 2, "logme": 3, "hscore": 4}
CONSTANT = "the same score for all sources on every target"
NEGATIVE = (
    "Rel@1 is undefined, and left out, on targets with negative performances: {}. It compares performances that are "
    "counted from 0: give accuracies, or turn losses and errors round into what is 0 at worst, such as 1 - error."
)


def _plain(name: str) -> str:
    """Return the common part of the spellings of a metric's name, such as `n_leep`, `nleep` and `N-LEEP`."""
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
        sha256: Digest of the file, and of that of the performances if there is one.
        ignored_columns: Columns of the file that are not needed.
        left_out: Metrics of the file that are not among the m, with the reasons.
    """

    metrics: list[str]
    sources: list[str]
    targets: list[str]
    own: Indices
    scores: Floats
    performances: Floats
    sha256: str
    ignored_columns: list[str]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def titles(self) -> list[str]:
        """Titles of the metrics, no two of them alike."""
        return metric_titles(self.metrics)

    @property
    def known(self) -> Flags:
        """Which sources are not the target itself, `[n, t]`."""
        return np.asarray(np.arange(len(self.sources))[:, None] != self.own)

    def remarks(self) -> list[str]:
        """Return sentences: which metrics and columns of the file are left out, and which targets have no Rel@1."""
        lines = [f"Left out: {metric} ({reason})." for metric, reason in self.left_out.items()]
        if negative := [name for name, low in zip(self.targets, self.performances.min(axis=0), strict=True) if low < 0]:
            lines.append(NEGATIVE.format(", ".join(negative)))
        if self.ignored_columns:
            lines.append(f"Columns of the table that were not needed: {', '.join(self.ignored_columns)}.")
        return lines


def metric_titles(names: Sequence[str]) -> list[str]:
    """Return the titles of metrics: N-LEEP for `nleep`, `n_leep` or `N-LEEP`.

    A metric keeps its name if the catalogue does not have it in any spelling, or if another one has the same title.
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
        least: Metrics that are needed; with 0, the columns `metric` and `score` may both be missing.
        performances: CSV file with the columns source, target and performance, which replace those of the table.

    Returns:
        The table, complete, without metrics that give all sources of every target the same score.

    Raises:
        UserError: The file cannot be read, or it has missing, double, contradicting or wrong cells; named in the text.
    """
    with_scores, with_performances = least > 0, performances is None
    records = read_records(path, trainable, exclude_target, chosen, columns or {}, with_scores, with_performances)
    metrics, sources, targets = (list(dict.fromkeys(axis)) for axis in records.axes)
    metrics = sorted(filter(None, metrics), key=lambda name: PAPER_ORDER.get(_plain(name), len(PAPER_ORDER)))
    _require(least, metrics, sources)

    digest = digest_file(path)
    if performances is not None:
        known = read_performances(performances, sources, targets)
        pairs = zip(*records.axes[1:], strict=True)
        records.performances = array("d", [known.get(pair, math.nan) for pair in pairs])
        digest = digest_of({"table": digest, "performances": digest_file(Path(performances))})

    # A table without metrics has one without a name.
    names = metrics or [""], sources, targets
    require_complete(records, names, exclude_target)
    own = np.array([sources.index(name) if exclude_target and name in sources else -1 for name in targets], np.intp)
    scores, reached = np.zeros([len(axis) for axis in names]), np.zeros([len(sources), len(targets)])
    indices = records.indices(names)
    scores[indices] = records.scores
    reached[indices[1:]] = records.performances
    table = TransferTable(
        metrics, sources, targets, own, scores[: len(metrics)], reached, digest, records.ignored_columns
    )
    return _leave_out_constant(table, least)


def _require(least: int, metrics: Sequence[str], sources: Sequence[str], left_out: str = "") -> None:
    if len(metrics) < least or len(sources) < 2:
        sizes = f"{len(metrics)} metrics{left_out} and {len(sources)} sources"
        needed = ("two or more sources are", "a metric and two or more sources are", "two or more of each are")[least]
        raise UserError(f"table: {sizes} found; {needed} compared")


def _leave_out_constant(table: TransferTable, least: int) -> TransferTable:
    """Leave out metrics with one score for all sources, which would leave every experiment without an outcome."""
    scores = zip(table.scores.transpose(2, 0, 1), table.known.T, strict=True)
    varying = np.any([scores_differ(its[:, known]) for its, known in scores], axis=0)
    left_out = [name for name, varies in zip(table.metrics, varying, strict=True) if not varies]
    metrics = [name for name, varies in zip(table.metrics, varying, strict=True) if varies]
    _require(least, metrics, table.sources, f" besides {', '.join(left_out)}, {CONSTANT}," if left_out else "")
    return replace(table, metrics=metrics, scores=table.scores[varying], left_out=dict.fromkeys(left_out, CONSTANT))

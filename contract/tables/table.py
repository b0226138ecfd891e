"""The table of a stability study or an audit: scores of metrics and performances by source and target, checked."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headstart.contract.tables.csv_tables import read_performances
from headstart.contract.tables.holes import MOST_NAMED, describe_holes, keep_complete, name_some, usable
from headstart.contract.tables.implausible import impossible_values, require_no_codes, saturated_scores
from headstart.contract.tables.layout import Missing, TableLayout
from headstart.contract.tables.records import TableRecords, combine_rows, find_holes, read_records
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.static_orders import scores_differ
from headstart.metrics.transferability.catalogue import METRICS, title_with_options
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


KNOWN = {_plain(spelling): name for name, metric in METRICS.items() for spelling in (name, metric.title)}


@dataclass(frozen=True)
class TransferTable:
    """Scores and performances of all sources on all targets.

    Attributes:
        metrics: Names of the m metrics, in the order that decides with `ties=last`.
        sources: Names of the n sources.
        targets: Names of the t targets.
        own: Which sources are the target itself or come from it, `[n, t]`; they are in no pool for it.
        known: Which cells count, `[n, t]`: a source's own target does not, nor does a hole.
        scores: Scores `[m, n, t]`; 0 where a cell does not count.
        performances: Performances `[n, t]`; 0 where a cell does not count.
        sha256: Digest of the file, and of that of the performances if there is one.
        ignored_columns: Columns of the file that are not needed.
        left_out: Metrics of the file that are not among the m, with the reasons.
        notes: Sentences on how the cells follow from the file: what was combined or left out, and what looks wrong.
    """

    metrics: list[str]
    sources: list[str]
    targets: list[str]
    own: Flags
    known: Flags
    scores: Floats
    performances: Floats
    sha256: str
    ignored_columns: list[str]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def complete(
        cls,
        metrics: Sequence[str],
        sources: Sequence[str],
        targets: Sequence[str],
        scores: Floats,
        performances: Floats,
        own: Flags | None = None,
    ) -> TransferTable:
        """Return the table of arrays without holes; `own` is where a source is the target, by default nowhere."""
        shape = len(sources), len(targets)
        excluded = np.zeros(shape, dtype=np.bool_) if own is None else own
        return cls(list(metrics), list(sources), list(targets), excluded, ~excluded, scores, performances, "", [])

    @property
    def titles(self) -> list[str]:
        """Titles of the metrics, no two of them alike."""
        return metric_titles(self.metrics)

    @property
    def holes(self) -> Flags:
        """Which cells are missing, `[n, t]`; those of a source's own target are not."""
        return ~(self.known | self.own)

    def part(self, sources: Flags, targets: Flags) -> TransferTable:
        """Return the table of some of the sources `[n]` and targets `[t]`."""
        return replace(
            self,
            sources=[name for name, kept in zip(self.sources, sources, strict=True) if kept],
            targets=[name for name, kept in zip(self.targets, targets, strict=True) if kept],
            own=self.own[sources][:, targets],
            known=self.known[sources][:, targets],
            scores=self.scores[:, sources][:, :, targets],
            performances=self.performances[sources][:, targets],
        )

    def remarks(self) -> list[str]:
        """Return sentences: the notes, and what of the file is left out."""
        lines = [*self.notes, *(f"Left out: {metric} ({reason})." for metric, reason in self.left_out.items())]
        if self.ignored_columns:
            lines.append(f"Columns of the table that were not needed: {', '.join(self.ignored_columns)}.")
        return lines


def metric_titles(names: Sequence[str]) -> list[str]:
    """Return the titles of metrics: N-LEEP for `nleep`, `n_leep` or `N-LEEP`, with options as `title_with_options`.

    A metric keeps its name if no spelling of it is in the catalogue, or if another one has the same title.
    """
    titles = [_title(name) for name in names]
    count = Counter(titles)
    return [title if count[title] == 1 else name for name, title in zip(names, titles, strict=True)]


def _title(name: str) -> str:
    if known := KNOWN.get(_plain(name)):
        return METRICS[known].title
    metric, _, options = name.partition("(")
    known = KNOWN.get(_plain(metric))
    return title_with_options(METRICS[known].title, options[:-1]) if known and options.endswith(")") else name


def read_table(
    path: Path,
    layout: TableLayout | None = None,
    chosen: Sequence[str] | None = None,
    least: int = 2,
    performances: str | None = None,
) -> TransferTable:
    """Read and check a table.

    Args:
        path: CSV file in the released layout, the plain one (`metric, source, target, score, performance`), or another
            that the layout describes.
        layout: How it is read.
        chosen: Names of the metrics to read; all by default.
        least: Metrics that are needed; with 0, the columns `metric` and `score` may both be missing.
        performances: CSV file with the columns source, target and performance, which replace those of the table.

    Returns:
        The table, without metrics that score all sources of every target the same, or lack a source that others score.
        It has its holes, if the layout does not refuse them; `without_holes` treats them.

    Raises:
        UserError: The file cannot be read, or it has missing, double, contradicting or wrong cells; named in the text.
    """
    layout = layout or TableLayout()
    if layout.best_by is not None and layout.mean_over:
        raise UserError("best_by, mean_over: both given; the rows of a cell are chosen from or averaged, not both")
    records = read_records(path, layout, chosen, least > 0, performances is None)
    metrics, sources, targets = (list(dict.fromkeys(axis)) for axis in records.axes)
    if unknown := [name for name in layout.classes if name not in targets]:
        raise UserError(f"classes: {', '.join(map(repr, unknown))} given; the targets are {', '.join(targets)}")
    metrics = sorted(
        filter(None, metrics), key=lambda name: PAPER_ORDER.get(_plain(name.partition("(")[0]), len(PAPER_ORDER))
    )
    _require(least, metrics, sources)

    digest = digest_file(path)
    if performances is not None:
        known = read_performances(
            performances,
            sources,
            targets,
            layout.performance_columns,
            layout.performance_where,
            layout.names,
            layout.missing_values or (),
        )
        pairs = zip(*records.axes[1:], strict=True)
        records.performances = array("d", [known.values.get(pair, math.nan) for pair in pairs])
        records.warnings = known.warnings
        digest = digest_of({"table": digest, "performances": digest_file(Path(performances))})
    # Values are looked at before rows are averaged.
    if layout.missing_values is None:
        require_no_codes(records)
    metric_of = {name: KNOWN.get(_plain(name)) for name in metrics}
    implausible = [*impossible_values(records, metric_of), *saturated_scores(records, metric_of)]
    combine_rows(records, layout)

    left_out = _leave_out_unknown(records, metrics, least)
    metrics = [name for name in metrics if name not in left_out]
    # A table without metrics has one without a name.
    names = metrics or [""], sources, targets
    own = _own_targets(records, layout, sources, targets)
    scores, reached = find_holes(records, names, own, layout.missing)
    warnings = [f"WARNING: {source} on {target}: {text}" for (source, target), text in records.warnings.items()]
    known_cells = ~own & np.isfinite(scores).all(axis=0) & np.isfinite(reached)
    table = TransferTable(
        metrics,
        sources,
        targets,
        own,
        known_cells,
        np.where(known_cells, scores, 0.0)[: len(metrics)],
        np.where(known_cells, reached, 0.0),
        digest,
        records.ignored_columns,
        left_out,
        [*warnings, *records.notes, *implausible],
    )
    return leave_out_constant(table, least)


def _own_targets(records: TableRecords, layout: TableLayout, sources: Sequence[str], targets: Sequence[str]) -> Flags:
    """Return which sources are the target itself or come from it, `[n, t]`."""
    own = np.zeros((len(sources), len(targets)), dtype=np.bool_)
    if layout.exclude_target:
        index = {name: position for position, name in enumerate(targets)}
        for row, source in zip(own, sources, strict=True):
            row[[index[name] for name in records.own.get(source, set()) | {source} if name in index]] = True
    return own


def without_holes(table: TransferTable, missing: Missing, least: int) -> TransferTable:
    """Treat the holes of a table.

    Args:
        table: A table with holes.
        missing: `complete` leaves out sources and targets with holes, `pairwise` those without any cell.
        least: Metrics that are needed.

    Returns:
        The table, with a note that says what is left.

    Raises:
        UserError: Too little is left.
    """
    notes = list(table.notes)
    part = table
    if missing == "complete" and table.holes.any():
        part, note = keep_complete(table)
        notes.append(note)
    kept = part.part(*usable(part))
    _require(0, kept.metrics, kept.sources)
    if kept.holes.any():
        notes.append(describe_holes(table, kept))
    elif idle := sorted(set(part.sources + part.targets) - set(kept.sources + kept.targets)):
        notes.append(f"Left out, as there is nothing to rank: {name_some(idle, MOST_NAMED)}.")
    lowest = zip(kept.targets, kept.performances.min(axis=0), strict=True)
    if negative := [name for name, low in lowest if low < 0]:
        notes.append(NEGATIVE.format(", ".join(negative)))
    return leave_out_constant(replace(kept, notes=notes), least)


def _require(least: int, metrics: Sequence[str], sources: Sequence[str], left_out: str = "") -> None:
    if len(metrics) < least or len(sources) < 2:
        sizes = f"{len(metrics)} metrics{left_out} and {len(sources)} sources"
        needed = ("two or more sources are", "a metric and two or more sources are", "two or more of each are")[least]
        raise UserError(f"table: {sizes} found; {needed} compared")


def _leave_out_unknown(records: TableRecords, metrics: Sequence[str], least: int) -> dict[str, str]:
    """Leave out metrics that have no score at all of a source that most other metrics score; return the reasons."""
    scored: dict[str, set[str]] = {name: set() for name in metrics}
    for metric, source, score in zip(*records.axes[:2], records.scores, strict=True):
        if metric and not math.isnan(score):
            scored[metric].add(source)
    scorers = Counter(source for its in scored.values() for source in its)
    others = len(metrics) - 1
    sources = dict.fromkeys(records.axes[1])
    lacking = {
        name: [source for source in sources if source not in its and scorers[source] > others / 2]
        for name, its in scored.items()
    }
    reasons = {name: f"no score of {name_some(sources, 1)}" for name, sources in lacking.items() if sources}
    if len(scored) - len(reasons) < max(least, 1):
        return {}
    records.keep([i for i, metric in enumerate(records.axes[0]) if metric not in reasons])
    return reasons


def _besides(left_out: Mapping[str, str]) -> str:
    return f" besides {', '.join(f'{name} ({reason})' for name, reason in left_out.items())}" if left_out else ""


def leave_out_constant(table: TransferTable, least: int) -> TransferTable:
    """Leave out metrics with one score for all sources, which would leave every experiment without an outcome."""
    scores = zip(table.scores.transpose(2, 0, 1), table.known.T, strict=True)
    varying = np.any([scores_differ(its[:, known]) for its, known in scores if known.any()], axis=0)
    left_out = [name for name, varies in zip(table.metrics, varying, strict=True) if not varies]
    metrics = [name for name, varies in zip(table.metrics, varying, strict=True) if varies]
    reasons = table.left_out | dict.fromkeys(left_out, CONSTANT)
    _require(least, metrics, table.sources, _besides(reasons))
    return replace(table, metrics=metrics, scores=table.scores[varying], left_out=reasons)

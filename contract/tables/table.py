"""The table of a stability study or an audit: scores of metrics and performances by source and target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.static_orders import scores_differ
from headstart.metrics.transferability.catalogue import METRICS
from headstart.output.errors import UserError

# The order of the paper's tables, which decides between tied metrics with `ties=last`; other metrics come later.
PAPER_ORDER = {"gbc": 0, "leep": 1, "nleep": 2, "logme": 3, "hscore": 4}
CONSTANT = "the same score for all sources on every target"


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
        sha256: Digest of the file, or of all files.
        ignored_columns: Columns of the file that are not needed.
        left_out: Metrics of the file that are not among the m, with the reasons.
        notes: Sentences on how the cells follow from the file: what was left out, and what looks wrong.
    """

    metrics: list[str]
    sources: list[str]
    targets: list[str]
    own: Flags
    known: Flags
    scores: Floats
    performances: Floats
    sha256: str = ""
    ignored_columns: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of_arrays(
        cls,
        metrics: Sequence[str],
        sources: Sequence[str],
        targets: Sequence[str],
        scores: Floats,
        performances: Floats,
        own: Flags | None = None,
        **notes: Any,
    ) -> TransferTable:
        """Return the table of arrays that are NaN in holes; `own` is where a source is the target, by default nowhere.

        `notes` are the attributes from `sha256` on.
        """
        excluded = np.zeros(performances.shape, dtype=np.bool_) if own is None else own
        known = ~excluded & np.isfinite(scores).all(axis=0) & np.isfinite(performances)
        cells = np.where(known, scores, 0.0), np.where(known, performances, 0.0)
        return cls(list(metrics), list(sources), list(targets), excluded, known, *cells, **notes)

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

    def without_constant_metrics(self) -> TransferTable:
        """Leave out metrics with one score for all sources, which would leave every experiment without an outcome."""
        scores = zip(self.scores.transpose(2, 0, 1), self.known.T, strict=True)
        differ = [scores_differ(its[:, known]) for its, known in scores if known.any()]
        varies = np.any([np.zeros(len(self.metrics), dtype=np.bool_), *differ], axis=0)
        reasons = {name: CONSTANT for name, differs in zip(self.metrics, varies, strict=True) if not differs}
        kept = [name for name in self.metrics if name not in reasons]
        return replace(self, metrics=kept, scores=self.scores[varies], left_out=self.left_out | reasons)

    def require(self, minimum: int) -> TransferTable:
        """Return the table, or raise a UserError if it has fewer metrics than `minimum`, or fewer than two sources."""
        if len(self.metrics) >= minimum and len(self.sources) > 1:
            return self
        reasons = ", ".join(f"{name} ({reason})" for name, reason in self.left_out.items())
        sizes = f"{len(self.metrics)} metrics{f' besides {reasons}' if reasons else ''} and {len(self.sources)} sources"
        needed = ("two or more sources are", "a metric and two or more sources are", "two or more of each are")[minimum]
        hint = "" if self.metrics or reasons or not minimum else "; the option metrics names columns of metrics"
        raise UserError(f"table: {sizes} found; {needed} compared{hint}")

    def remarks(self) -> list[str]:
        """Return sentences: the notes, and what of the file is left out."""
        lines = [*self.notes, *(f"Left out: {metric} ({reason})." for metric, reason in self.left_out.items())]
        if self.ignored_columns:
            lines.append(f"Columns of the table that were not needed: {', '.join(self.ignored_columns)}.")
        return lines


def in_paper_order(metrics: Iterable[str]) -> list[str]:
    """Sort metrics in the order of the paper's tables; others come later, in their order."""
    return sorted(metrics, key=lambda name: PAPER_ORDER.get(_plain(name.partition("(")[0]), len(PAPER_ORDER)))


def is_metric(name: str) -> bool:
    """Return whether a name is a spelling of a metric of the catalogue, perhaps with options in brackets."""
    metric, bracket, _ = name.partition("(")
    return _plain(name) in KNOWN or (_plain(metric) in KNOWN and bool(bracket) and name.endswith(")"))


def metric_titles(names: Sequence[str]) -> list[str]:
    """Return the titles of metrics: N-LEEP for `nleep`, `n_leep` or `N-LEEP`, with options `GBC (covariance=diagonal)`.

    A metric keeps its name if no spelling of it is in the catalogue, or if another one has the same title.
    """
    titles = [_title(name) for name in names]
    count = Counter(titles)
    return [title if count[title] == 1 else name for name, title in zip(names, titles, strict=True)]


def _title(name: str) -> str:
    if known := KNOWN.get(_plain(name)):
        return METRICS[known].title
    metric, _, options = name.partition("(")
    return f"{METRICS[KNOWN[_plain(metric)]].title} ({options}" if is_metric(name) else name

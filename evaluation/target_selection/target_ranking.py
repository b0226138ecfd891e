"""Scores of one source model on a pool of targets, and the report that ranks these by every metric."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.evaluation.sources.results import ScoredCandidates
from headstart.evaluation.sources.source_ranking import ranked_table, shared_remarks
from headstart.evaluation.sources.targets import Target
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, Measure, kendall
from headstart.output.markup import escape_markdown, escape_names
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_report, print_table

PRINTED_TARGETS = 10
LEGEND = (
    "Higher scores are better; NumC has its sign reversed, so that fewer classes are better. In brackets: the rank; 1 "
    "is the best. The mean rank is over the metrics that rank all targets and are not saturated, but for NumC."
)
TAU = "tau with NumC"
TAU_LEGEND = (
    "tau with NumC: Kendall's tau-b between the ranking of the targets by the metric and that by the number of their "
    "classes alone, fewer first; 1 says that both rankings are the same."
)
# Agostinelli et al., How stable are Transferability Metrics evaluations?, ECCV 2022, section 7 and table 4.
VARYING_WARNING = (
    "Warning: the targets have from {least} to {most} classes. Fewer classes make an easier target, so that counting "
    "them predicts performance about as well as the best metrics do: weighted Kendall 0.87 against 0.90 on average in "
    "Agostinelli et al. (ECCV 2022), table 4a. Such a pool rewards a metric for a bias toward few classes, and is not "
    "fit to compare metrics; they advise a fixed number of classes (section 7): --class_share=half."
)


@dataclass(frozen=True)
class RankedTargets(ScoredCandidates):
    """The targets of a pool with their scores.

    Attributes:
        classes: Classes of each target as indices, ascending.
        photos: Number of photos of each target.
        dataset: The data set that they are made of.
    """

    classes: Sequence[NDArray[np.int64]]
    photos: Sequence[int]
    dataset: Target

    @cached_property
    def sizes(self) -> list[int]:
        """Number of classes of each target."""
        return [len(classes) for classes in self.classes]

    @property
    def repeated(self) -> int:
        """Number of targets that have the same classes as an earlier one."""
        return len(self.classes) - len({tuple(classes.tolist()) for classes in self.classes})

    def kendall_with_num_classes(self) -> dict[str, float | None]:
        """Correlate the ranking of the targets by every metric with that by NumC, fewer classes first.

        Kendall's tau-b by metric; None where the metric or NumC ranks nothing.
        """
        return self._measure(kendall, [-float(size) for size in self.sizes])

    def measures(self) -> dict[Measure, dict[str, float | None]]:
        """Measure how well every metric predicts the performances.

        Returns:
            By measure and metric, None where one is undefined; nothing where not all performances are known.
        """
        if not set(self.scores) <= set(self.performances):
            return {}
        reached = [self.performances[name] for name in self.scores]
        return {name: self._measure(measure.compute, reached) for name, measure in EVALUATION_MEASURES.items()}

    def _measure(
        self, compute: Callable[[ArrayLike, ArrayLike], float], performances: Sequence[float]
    ) -> dict[str, float | None]:
        measured: dict[str, float | None] = dict.fromkeys(self.metrics)
        # A metric that ranks nothing would be measured by its rounding errors.
        for metric in self.ranking.ranks:
            values = [score for scores in self.scores.values() if (score := scores[metric].value) is not None]
            value = compute(values, performances)
            measured[metric] = value if math.isfinite(value) else None
        return measured


def print_target_ranking(results: RankedTargets) -> None:
    """Print the metrics, the targets that rank first, and the warnings."""
    more = len(results.scores) - PRINTED_TARGETS
    print_table("metrics", _metric_table(results))
    title = f"targets by mean rank{f'; {more} more are in report.md' if more > 0 else ''}"
    print_table(title, _target_table(results)[: PRINTED_TARGETS + 1])
    print_lines([LEGEND, TAU_LEGEND, *_remarks(results)])


def target_report(results: RankedTargets, document: Mapping[str, Any]) -> str:
    """Write the report in Markdown; the document is the content of `targets.json`."""
    settings = (
        f"{len(results.scores)} targets of classes of {document['dataset']} ({document['split']} photos, class share "
        f"{document['class_share']}, seed {document['seed']}); source model {document['source']}."
    )
    about = f"{escape_markdown(settings)}\n\n{LEGEND} {TAU_LEGEND}"
    tables = {"Metrics": _metric_table(results), "Targets": _target_table(results)}
    escaped = [(title, "", escape_names(rows)) for title, rows in tables.items()]
    return markdown_report("Target selection", about, _remarks(results), escaped)


def _metric_table(results: RankedTargets) -> list[list[str]]:
    """Tabulate the metrics: the targets they rank first and last, their correlation with NumC, and their time."""
    with_num_classes, measures = results.kendall_with_num_classes(), results.measures()
    titles = [EVALUATION_MEASURES[name].title for name in measures]
    rows = [["metric", "best target", "worst target", TAU, *titles, "seconds for all targets"]]
    for name, metric in results.metrics.items():
        ranks = results.ranking.ranks.get(name)
        ends = ["–", "–"] if ranks is None else [min(ranks, key=ranks.__getitem__), max(ranks, key=ranks.__getitem__)]
        measured = [format_number(values[name], ".3f") for values in measures.values()]
        seconds = sum(scores[name].seconds for scores in results.scores.values())
        rows.append([metric.title, *ends, format_number(with_num_classes[name], ".3f"), *measured, f"{seconds:.2f}"])
    return rows


def _target_table(results: RankedTargets) -> list[list[str]]:
    """Tabulate the targets by their mean rank."""
    numbers = {"classes": results.sizes, "photos": results.photos}
    columns = {title: dict(zip(results.scores, map(str, values), strict=True)) for title, values in numbers.items()}
    return ranked_table(results, "target", columns, ".1f")


def _remarks(results: RankedTargets) -> list[str]:
    """Return warnings about the pool, and the reasons for missing scores."""
    least, most = min(results.sizes), max(results.sizes)
    varying = VARYING_WARNING.format(least=least, most=most)
    lines = [varying if least < most else f"All targets have {least} classes, so NumC cannot rank them."]
    if results.repeated:
        lines.append(
            f"Warning: {results.repeated} of {len(results.scores)} targets have the same classes as an earlier one; "
            "the data set has too few classes for that many different targets."
        )
    baselines = {"facts": ": it is the same for all targets, and ranks none."}
    lines += shared_remarks(results, "targets", results.dataset, baselines)
    for name, metric in results.metrics.items():
        if reasons := results.missing(name):
            count = sum(map(len, reasons.values()))
            lines.append(f"{metric.title} has no score for {count} targets: {'; '.join(reasons)}.")
    return lines

"""The figures of a stability study: the options of their content, and the panels of strongest contradiction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal, get_args

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.study import Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.ranking_measures import MEASURES, Measure
from headstart.output.errors import UserError

# Parts of the figures: two targets, two measures, pools alone, and the graph of experiments.
Part = Literal["target", "measure", "pool", "graph"]
Examples = Mapping[Part, Mapping[str, Any]]


@dataclass(frozen=True)
class FigureChoice:
    """The content of the figures of a stability study.

    Args:
        measure: Measure of the figures. By default that of the paper's figures: Pearson for the preset `scenario2`,
            otherwise weighted Kendall.
        metrics: Two metrics to compare. By default all pairs, and where single components vary the pairs with the
            strongest contradictions.
        target: Target of figures in which it does not vary. By default that with the strongest contradiction.
        targets: Two targets to compare, in figures in which the target varies and in the graph of experiments. By
            default those with the strongest contradiction.
        measures: Two measures to compare, in figures in which the measure varies and in the graph of experiments. By
            default the correlations with the strongest contradiction; in the graph, the measure of the figures and
            Pearson or weighted Kendall.
    """

    measure: Measure | None = None
    metrics: list[str] | None = None
    target: str | None = None
    targets: list[str] | None = None
    measures: list[Measure] | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def of_parts(self, examples: Examples) -> dict[Part, FigureChoice]:
        """Return the choice of each part of the figures: the options of its example, if it has one, and these."""
        return {part: FigureChoice(**{**examples.get(part, {}), **self.chosen}) for part in get_args(Part)}

    def require_known(self, table: TransferTable) -> None:
        """Raise a UserError for names that are not in the study, and for options with too few or too many names."""
        for option, name, known in self.unknown_names(table):
            raise UserError(f"figures.{option}: {name!r} is not in the study, which has {known}")
        for option in ("metrics", "targets", "measures"):
            names = getattr(self, option)
            if names is not None and (len(names) != 2 or len(set(names)) != 2):
                raise UserError(f"figures.{option}: {names} given; two different ones are compared")

    def unknown_names(self, table: TransferTable) -> Iterator[tuple[str, str, str]]:
        """Yield each name that is not in the table, with its option, and the names that the table has."""
        for option, names, known in (
            ("metrics", self.metrics or [], table.metrics),
            ("target", [self.target] if self.target else [], table.targets),
            ("targets", self.targets or [], table.targets),
        ):
            yield from ((option, name, ", ".join(known)) for name in names if name not in known)

    def pairs(self, table: TransferTable) -> list[tuple[int, int]]:
        """Return the pairs of metrics that are compared, as indices."""
        names = table.metrics if self.metrics is None else self.metrics
        return list(combinations(map(table.metrics.index, names), 2))

    def fixed_targets(self, table: TransferTable) -> list[int]:
        """Return the indices of targets that may be shown where the target does not vary."""
        return [i for i, name in enumerate(table.targets) if self.target in (None, name)]

    def compared_targets(self, table: TransferTable) -> list[int]:
        """Return the indices of targets that may be shown where the target varies."""
        return [table.targets.index(name) for name in self.targets or table.targets]


def fitting_examples(examples: Examples, table: TransferTable) -> dict[Part, Mapping[str, Any]]:
    """Return those of the paper's examples whose targets and metrics are in a table."""
    return {part: its for part, its in examples.items() if not any(FigureChoice(**its).unknown_names(table))}


@dataclass(frozen=True)
class Panel:
    """A scatter plot of experiments with all pools: two metrics on one target by one measure, all as indices.

    Attributes:
        target: Target.
        measure: Measure.
        across: Metric on the horizontal axis.
        up: Metric on the vertical axis.
    """

    target: int
    measure: int
    across: int
    up: int

    def points(self, study: Study) -> Floats:
        """Return the defined outcomes of the pools that are shown, `[pools, 2]`."""
        points = study.shown[:, self.target, self.measure][:, [self.across, self.up]]
        return points[np.isfinite(points).all(axis=1)]

    def differences(self, study: Study) -> Floats:
        """Return by how much the metric on the vertical axis is better in each pool, `[pools]`."""
        points = self.points(study)
        return points[:, 1] - points[:, 0]


def varying_target(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Return two targets on which two metrics contradict each other most; one, if there is only one target."""
    targets, pairs = choice.compared_targets(study.table), choice.pairs(study.table)
    return _most_contradicting(([Panel(target, measure, *pair) for target in targets] for pair in pairs), study)


def varying_measure(study: Study, choice: FigureChoice) -> list[Panel]:
    """Return two measures by which two metrics on the same target contradict each other most."""
    # Rel@1 has another scale than the three correlations.
    measures = [MEASURES.index(name) for name in choice.measures or ("weighted_kendall", "kendall", "pearson")]
    fixed = product(choice.fixed_targets(study.table), choice.pairs(study.table))
    return _most_contradicting(([Panel(target, each, *pair) for each in measures] for target, pair in fixed), study)


def varying_pool(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Return up to two targets, different if possible, on which the pool alone decides which of two metrics wins."""
    fixed = product(choice.fixed_targets(study.table), choice.pairs(study.table))
    panels = [Panel(target, measure, *pair) for target, pair in fixed]
    first, *others = sorted(panels, key=lambda panel: -_indecision(panel, study))
    return [first, *(panel for panel in others if choice.target is not None or panel.target != first.target)][:2]


def _most_contradicting(alternatives: Iterable[list[Panel]], study: Study) -> list[Panel]:
    """Return, of panels that differ in one component, the two with the largest gaps on either side of equality."""
    candidates = []
    for panels in alternatives:
        differences = [panel.differences(study) for panel in panels]
        gaps = [float(each.mean()) if len(each) else 0.0 for each in differences]
        # The stable sort returns two panels even if all gaps are the same.
        low, high = np.argsort(gaps, kind="stable")[[0, -1]].tolist()
        candidates.append((min(gaps[high], -gaps[low]), [panels[i] for i in sorted({low, high})]))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _indecision(panel: Panel, study: Study) -> float:
    """Return how evenly the wins are distributed, times how large the differences are."""
    differences = panel.differences(study)
    if not len(differences):
        return 0.0
    return (1 - abs(float(np.sign(differences).mean()))) * float(np.abs(differences).mean())

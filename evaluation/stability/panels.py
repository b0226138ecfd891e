"""The panels of the figures of a stability study: which experiments contradict each other most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.stability.figure_choice import FigureChoice
from headstart.evaluation.stability.study import Study
from headstart.metrics.ranking.ranking_measures import MEASURES

Values = NDArray[np.float64]


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

    def points(self, study: Study) -> Values:
        """Return the defined outcomes of the pools that are shown, `[pools, 2]`."""
        points = study.shown[:, self.target, self.measure][:, [self.across, self.up]]
        return points[np.isfinite(points).all(axis=1)]

    def differences(self, study: Study) -> Values:
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

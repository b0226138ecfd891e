"""Which experiments of a stability study its figures show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from evaluation.stability.study import Study
from evaluation.stability.table import TransferTable
from metrics.ranking.ranking_measures import MEASURES, Measure
from output.errors import UserError

Values = NDArray[np.float64]


@dataclass(frozen=True)
class FigureChoice:
    """What the figures of a stability study show.

    Args:
        measure: Measure of the figures; by default the one of the paper's figures, which is Pearson for the preset
            `scenario2` and weighted Kendall elsewhere.
        metrics: Two metrics to compare; by default all pairs, and the pairs with the strongest contradictions where
            single components vary.
        target: Target where it does not vary; by default that with the strongest contradiction.
    """

    measure: Measure | None = None
    metrics: list[str] | None = None
    target: str | None = None

    def require_known(self, table: TransferTable) -> None:
        """Check the names; a UserError says which is not in the study, or that it is not two metrics."""
        given = {"metrics": (self.metrics or [], table.metrics), "target": ([self.target or ""], ["", *table.targets])}
        for option, (names, known) in given.items():
            for name in names:
                if name not in known:
                    there = ", ".join(filter(None, known))
                    raise UserError(f"figures.{option}: {name!r} is not in the study, which has {there}")
        if self.metrics is not None and len(set(self.metrics)) != 2:
            raise UserError(f"figures.metrics: {self.metrics} given; two different ones are compared")

    def pairs(self, table: TransferTable) -> list[tuple[int, int]]:
        """Give the pairs of metrics that are compared, as indices."""
        chosen = table.metrics if self.metrics is None else self.metrics
        return list(combinations(map(table.metrics.index, chosen), 2))

    def targets(self, table: TransferTable) -> list[int]:
        """Give the targets that may be shown where the target does not vary, as indices."""
        return [place for place, name in enumerate(table.targets) if self.target in (None, name)]


@dataclass(frozen=True)
class Panel:
    """A scatter of experiments with all pools: two metrics on one target by one measure, all as indices.

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
        """Give the defined outcomes of the pools that are shown, `[pools, 2]`."""
        points = study.shown[:, self.target, self.measure][:, [self.across, self.up]]
        return points[np.isfinite(points).all(axis=1)]


def varying_target(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find two targets on which two metrics contradict each other most; one, if there is only one target."""
    targets = range(len(study.table.targets))
    pairs = choice.pairs(study.table)
    return _most_contrary(([Panel(target, measure, *pair) for target in targets] for pair in pairs), study)


def varying_measure(study: Study, choice: FigureChoice) -> list[Panel]:
    """Find two correlations by which two metrics on the same target contradict each other most."""
    # Rel@1 lies on another scale than the three correlations.
    measures = [MEASURES.index(name) for name in ("weighted_kendall", "kendall", "pearson")]
    places = product(choice.targets(study.table), choice.pairs(study.table))
    return _most_contrary(([Panel(target, each, *pair) for each in measures] for target, pair in places), study)


def _most_contrary(alternatives: Iterable[list[Panel]], study: Study) -> list[Panel]:
    """Find, among panels that differ in one component, the two that lie farthest on either side of equality."""
    candidates = []
    for panels in alternatives:
        differences = [_differences(panel, study) for panel in panels]
        gaps = [float(each.mean()) if len(each) else 0.0 for each in differences]
        # By rank, so that these are two also where all gaps are the same.
        low, high = (int(place) for place in np.argsort(gaps, kind="stable")[[0, -1]])
        candidates.append((min(gaps[high], -gaps[low]), list(dict.fromkeys([panels[low], panels[high]]))))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def varying_pool(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find up to two targets on which the pool alone decides which of two metrics wins, different if that is open."""
    places = product(choice.targets(study.table), choice.pairs(study.table))
    panels = [Panel(target, measure, *pair) for target, pair in places]
    first, *others = sorted(panels, key=lambda panel: -_indecision(panel, study))
    return [first, *(panel for panel in others if choice.target is not None or panel.target != first.target)][:2]


def _indecision(panel: Panel, study: Study) -> float:
    """Say how evenly the wins are spread, and how wide the differences."""
    differences = _differences(panel, study)
    if not len(differences):
        return 0.0
    return (1 - abs(float(np.sign(differences).mean()))) * float(np.abs(differences).mean())


def _differences(panel: Panel, study: Study) -> Values:
    """Give by how much the metric on the vertical axis is better in each pool."""
    points = panel.points(study)
    return points[:, 1] - points[:, 0]

"""Which experiments of a stability study its figures show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

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
        """Check the names.

        Args:
            table: What is studied.

        Raises:
            UserError: A metric or target is not in the study, or it is not two metrics.
        """
        for name in self.metrics or []:
            if name not in table.metrics:
                raise UserError(f"figures.metrics: {name!r} is not in the study, which has {', '.join(table.metrics)}")
        if self.metrics is not None and len(set(self.metrics)) != 2:
            raise UserError(f"figures.metrics: {self.metrics} given; two different ones are compared")
        if self.target is not None and self.target not in table.targets:
            raise UserError(
                f"figures.target: {self.target!r} is not in the study, which has {', '.join(table.targets)}"
            )

    def pairs(self, table: TransferTable) -> list[tuple[int, int]]:
        """Give the pairs of metrics that are compared.

        Args:
            table: What is studied.

        Returns:
            Indices of two metrics each.
        """
        if self.metrics is None:
            return list(combinations(range(len(table.metrics)), 2))
        first, second = (table.metrics.index(name) for name in self.metrics)
        return [(first, second)]


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
        """Give the outcomes of the pools that are shown.

        Args:
            study: A complete study.

        Returns:
            `[pools, 2]`, without undefined ones.
        """
        points = study.shown[:, self.target, self.measure][:, [self.across, self.up]]
        return points[np.isfinite(points).all(axis=1)]

    def lead(self, study: Study) -> float:
        """Say how much more often the metric on the vertical axis is better.

        Args:
            study: A complete study.

        Returns:
            Share of the pools where it is less the share where the other one is; 0 where there are no points.
        """
        points = self.points(study)
        signs = np.sign(points[:, 1] - points[:, 0])
        return float(signs.mean()) if len(signs) else 0.0

    def gap(self, study: Study) -> float:
        """Give the mean difference of the two metrics.

        Args:
            study: A complete study.

        Returns:
            Vertical less horizontal metric; 0 where there are no points.
        """
        points = self.points(study)
        return float((points[:, 1] - points[:, 0]).mean()) if len(points) else 0.0


def varying_target(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find two targets on which two metrics contradict each other most.

    Args:
        study: A complete study.
        choice: What is fixed.
        measure: Index of the measure.

    Returns:
        Two panels that differ in the target; one, if there is only one target.
    """
    targets = range(len(study.table.targets))
    return _most_contrary(
        ([Panel(target, measure, *pair) for target in targets] for pair in choice.pairs(study.table)), study
    )


def varying_measure(study: Study, choice: FigureChoice) -> list[Panel]:
    """Find two correlations by which two metrics on the same target contradict each other most.

    Args:
        study: A complete study.
        choice: What is fixed.

    Returns:
        Two panels that differ in the measure.
    """
    # Rel@1 lies on another scale than the three correlations.
    measures = [MEASURES.index(name) for name in ("weighted_kendall", "kendall", "pearson")]
    return _most_contrary(
        (
            [Panel(target, measure, *pair) for measure in measures]
            for target in _targets(study, choice)
            for pair in choice.pairs(study.table)
        ),
        study,
    )


def _most_contrary(alternatives: Iterable[list[Panel]], study: Study) -> list[Panel]:
    """Find, among panels that differ in one component, the two that lie farthest on either side of equality."""
    candidates = []
    for panels in alternatives:
        gaps = [panel.gap(study) for panel in panels]
        # By rank, so that these are two also where all gaps are the same.
        low, high = (int(place) for place in np.argsort(gaps, kind="stable")[[0, -1]])
        candidates.append((min(gaps[high], -gaps[low]), list(dict.fromkeys([panels[low], panels[high]]))))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def varying_pool(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find targets on which the pool alone decides which of two metrics wins.

    Args:
        study: A complete study.
        choice: What is fixed.
        measure: Index of the measure.

    Returns:
        Up to two panels, with different targets where the choice leaves that open.
    """
    ranked = sorted(
        (Panel(target, measure, *pair) for target in _targets(study, choice) for pair in choice.pairs(study.table)),
        key=lambda panel: -_indecision(panel, study),
    )
    other = [panel for panel in ranked[1:] if choice.target is not None or panel.target != ranked[0].target]
    return [ranked[0], *other[:1]]


def _indecision(panel: Panel, study: Study) -> float:
    """Say how evenly the wins are spread, and how wide the differences."""
    points = panel.points(study)
    if not len(points):
        return 0.0
    return (1 - abs(panel.lead(study))) * float(np.abs(points[:, 1] - points[:, 0]).mean())


def _targets(study: Study, choice: FigureChoice) -> list[int]:
    targets = study.table.targets
    return list(range(len(targets))) if choice.target is None else [targets.index(choice.target)]

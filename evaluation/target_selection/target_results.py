"""What the metrics say of one source model on a pool of targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.sources.ranking import Ranking, rank_sources
from evaluation.sources.scores import Metrics, Score
from metrics.ranking.ranking_measures import Measure, kendall, pearson, rel_at_1, weighted_kendall

MEASURES: dict[Measure, Callable[[ArrayLike, ArrayLike], float]] = {
    "weighted_kendall": weighted_kendall,
    "kendall": kendall,
    "pearson": pearson,
    "rel_at_1": rel_at_1,
}


@dataclass(frozen=True)
class PoolResults:
    """What the metrics say of one source model on a pool of targets.

    Attributes:
        source: The source model.
        metrics: The metrics by name.
        targets: Names of the targets.
        classes: Numbers of classes of each target, ascending.
        photos: Number of photos of each target.
        scores: Scores by metric, of each target.
        performances: Known performances by target.
    """

    source: str
    metrics: Metrics
    targets: Sequence[str]
    classes: Sequence[NDArray[np.int64]]
    photos: Sequence[int]
    scores: Sequence[Mapping[str, Score]]
    performances: Mapping[str, float]

    @cached_property
    def sizes(self) -> list[int]:
        """Number of classes of each target."""
        return [len(chosen) for chosen in self.classes]

    @property
    def repeated(self) -> int:
        """Number of targets that have the same classes as an earlier one."""
        return len(self.classes) - len({tuple(chosen.tolist()) for chosen in self.classes})

    @cached_property
    def ranking(self) -> Ranking:
        """The targets, ranked by every metric; the baseline has no part in the mean."""
        named = dict(zip(self.targets, self.scores, strict=True))
        alone: dict[str, dict[str, Score]] = {
            name: {metric: score for metric, score in scores.items() if not self.metrics[metric].baseline}
            for name, scores in named.items()
        }
        without = rank_sources(alone)
        return Ranking(without.sources, rank_sources(named).ranks, without.mean_ranks)

    def values(self, metric: str) -> list[float] | None:
        """Give the scores of a metric.

        Args:
            metric: The metric.

        Returns:
            The score of each target; None where one of them has none.
        """
        found = [scores[metric].value for scores in self.scores]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None

    def kendall_with_num_classes(self) -> dict[str, float | None]:
        """Correlate the ranking of the targets by every metric with that by NumC, fewer classes first.

        Returns:
            Kendall's tau-b by metric; None where the metric or NumC ranks nothing.
        """
        return self._measure(kendall, [-float(size) for size in self.sizes])

    def measures(self) -> dict[Measure, dict[str, float | None]]:
        """Measure how well every metric foretells the performances.

        Returns:
            By measure and metric, None where one is undefined; nothing where not all performances are known.
        """
        if any(name not in self.performances for name in self.targets):
            return {}
        reached = [self.performances[name] for name in self.targets]
        return {name: self._measure(measure, reached) for name, measure in MEASURES.items()}

    def _measure(
        self, measure: Callable[[ArrayLike, ArrayLike], float], performances: Sequence[float]
    ) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for metric in self.metrics:
            values = self.values(metric)
            value = math.nan if values is None or len(values) < 2 else measure(values, performances)
            found[metric] = value if math.isfinite(value) else None
        return found

    def rows(self) -> list[list[Any]]:
        """Give the rows of the plain table; None stands for an empty cell."""
        return [
            [metric, self.source, name, score.value, self.performances.get(name), score.seconds]
            for name, scores in zip(self.targets, self.scores, strict=True)
            for metric, score in scores.items()
        ]

    def reasons(self) -> dict[str, list[str]]:
        """Say by metric why scores are missing, each reason once."""
        found = {
            metric: list(dict.fromkeys(scores[metric].reason for scores in self.scores if scores[metric].value is None))
            for metric in self.metrics
        }
        return {metric: reasons for metric, reasons in found.items() if reasons}

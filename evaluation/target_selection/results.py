"""Scores of one source model on a pool of targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.evaluation.sources.results import Scored
from headstart.evaluation.sources.targets import Target
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, Measure, kendall


@dataclass(frozen=True)
class RankedTargets(Scored):
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

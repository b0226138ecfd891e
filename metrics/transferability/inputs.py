"""What transferability metrics are computed from: one source model on one target, or on many of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.transferability.dataset_statistics import DatasetStatistics, TargetStatistics
from metrics.transferability.feature_statistics import FeatureStatistics


class Inputs:
    """What the metrics of one source model on one target are computed from.

    Args:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        probabilities: Of the source head's classes, `[samples, source classes]`; None where there is no head.
        seed: Of the metrics that draw.
        rows: Which of these samples the target has; all of them by default. They are gathered when asked for.
        statistics: Of these rows, where they follow from others; computed from the rows by default.
    """

    def __init__(
        self,
        features: NDArray[np.floating[Any]],
        labels: NDArray[np.int64],
        probabilities: NDArray[np.float64] | None = None,
        seed: int = 0,
        rows: NDArray[np.int64] | slice = slice(None),
        statistics: FeatureStatistics | None = None,
    ) -> None:
        self._features, self._labels, self._probabilities = features, labels, probabilities
        self._rows, self._statistics = rows, statistics
        self.seed = seed

    @cached_property
    def features(self) -> NDArray[np.floating[Any]]:
        """The features, `[samples, features]`."""
        return self._features[self._rows]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The labels, `[samples]`."""
        return self._labels[self._rows]

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Probabilities of the source head's classes, `[samples, source classes]`; a ValueError where it has none."""
        if self._probabilities is None:
            raise ValueError("the model has no source head, whose probabilities are needed")
        return self._probabilities[self._rows]

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Statistics of the features, which all metrics share."""
        return FeatureStatistics(self.features, self.labels) if self._statistics is None else self._statistics


@dataclass(frozen=True)
class Pool:
    """One source model on many targets that are made of classes of one data set.

    Attributes:
        features: Of the data set, `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        head: Probabilities of the source head's classes, `[samples, source classes]`; None where there is no head.
        targets: Classes of each target, by their places among the labels that occur, ascending.
        seed: Of the metrics that draw.
    """

    features: NDArray[np.floating[Any]]
    labels: NDArray[np.int64]
    head: NDArray[np.float64] | None
    targets: Sequence[NDArray[np.int64]]
    seed: int = 0

    @cached_property
    def dataset(self) -> DatasetStatistics:
        """Statistics of the data set, which all targets share."""
        return DatasetStatistics(self.features, self.labels)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """As `Inputs.probabilities`, of the data set."""
        return Inputs(self.features, self.labels, self.head).probabilities

    @cached_property
    def holds(self) -> NDArray[np.bool_]:
        """Which target holds which class, `[targets, classes]`."""
        holds = np.zeros((len(self.targets), self.dataset.classes), dtype=bool)
        for row, chosen in zip(holds, self.targets, strict=True):
            row[chosen] = True
        return holds

    def inputs(self, chosen: NDArray[np.int64]) -> Inputs:
        """Give what the metrics on the target of some classes are computed from.

        Its rows stay in the order of the data set; its statistics follow from those of the data set.
        """
        dataset = self.dataset
        rows = np.sort(np.concatenate([dataset.order[dataset.rows[label]] for label in chosen]))
        return Inputs(self.features, self.labels, self.head, self.seed, rows, TargetStatistics(dataset, chosen))

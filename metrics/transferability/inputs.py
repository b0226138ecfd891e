"""The inputs of transferability metrics: one source model on one target, and targets sampled from a data set."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Flags, Floats, Indices
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.remaining_statistics import RemainingStatistics

ClassShare = Literal["varying", "half"]

LEAST_SHARE = 0.02
LEAST_CLASSES = 2


def sample_targets(classes: int, targets: int, share: ClassShare, seed: int) -> list[NDArray[np.int64]]:
    """Sample the classes of every target.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 7. With
    `varying`, the number of classes is uniform over the whole numbers from 2 % of all (at least 2) to all. With `half`,
    it is always half of them, rounded down. The classes are then a subset of that size, each equally likely.

    Args:
        classes: Classes of the data set.
        targets: Number of targets.
        share: `varying` or `half`.
        seed: Seed of the sample; the first targets do not depend on how many there are.

    Returns:
        Classes of each target, ascending.

    Raises:
        ValueError: The data set has too few classes for two different targets.
    """
    if classes <= LEAST_CLASSES:
        needed = LEAST_CLASSES + 1
        raise ValueError(f"it has {classes} classes, and targets are subsets of them; {needed} or more are needed")
    generator = np.random.default_rng(seed)
    least = max(LEAST_CLASSES, math.ceil(LEAST_SHARE * classes))
    half = max(LEAST_CLASSES, classes // 2)

    pool = []
    for _ in range(targets):
        size = int(generator.integers(least, classes, endpoint=True)) if share == "varying" else half
        pool.append(np.sort(generator.choice(classes, size, replace=False)).astype(np.int64))
    return pool


class Inputs:
    """The inputs of the metrics of one source model on one target.

    Args:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        probabilities: Probabilities of the source head's classes, `[samples, source classes]`. They are an array, or
            rows that are computed when they are indexed. None where there is no head.
        seed: Seed of the metrics that sample.
        facts: What is known of the source model, whatever the target.
        rows: The rows of these arrays that the target has, gathered on first use; all rows by default.
        statistics: Statistics of these rows; computed from the rows by default.
    """

    def __init__(
        self,
        features: NDArray[np.floating[Any]],
        labels: NDArray[np.int64],
        probabilities: Array | None = None,
        seed: int = 0,
        facts: SourceFacts = SourceFacts(),  # noqa: B008 - frozen
        rows: NDArray[np.int64] | None = None,
        statistics: FeatureStatistics | None = None,
    ) -> None:
        self._features, self._labels, self._probabilities = features, labels, probabilities
        self._rows, self._statistics = rows, statistics
        self._chosen = slice(None) if rows is None else rows
        self.seed, self.facts = seed, facts

    @cached_property
    def features(self) -> NDArray[np.floating[Any]]:
        """The features, `[samples, features]`."""
        return self._features[self._chosen]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The labels, `[samples]`."""
        return self._labels[self._chosen]

    @property
    def has_head(self) -> bool:
        """Whether there are probabilities of a source head."""
        return self._probabilities is not None

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of the source head's classes, `[samples, source classes]`; a ValueError without a head."""
        if self._probabilities is None:
            raise ValueError("the model has no source head, whose probabilities are needed")
        probabilities: Floats = self._probabilities[self._chosen]
        if self._rows is None:
            # Those of some of the samples are not computed again.
            self._probabilities = probabilities
        return probabilities

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Statistics of the features, which all metrics share."""
        if self._statistics is not None:
            return self._statistics
        return FeatureStatistics(self.features, self.labels)

    @property
    def arrays(self) -> list[Array]:
        """Features, labels, and probabilities if there are any; those of all rows are not copied to memory."""
        if self._rows is None:
            return [each for each in (self._features, self._labels, self._probabilities) if each is not None]
        return [self.features, self.labels, *([self.probabilities] if self.has_head else [])]

    @cached_property
    def order(self) -> Indices:
        """Index of every row of the statistics among these samples, `[samples]`."""
        return np.argsort(self.labels, kind="stable")

    def remaining(self, kept: Flags) -> Inputs:
        """Return the inputs of some of the samples, at least one of each class.

        Args:
            kept: The mask of these samples, `[samples]`.
        """
        return self.subset(kept, RemainingStatistics(self.statistics, kept[self.order]))

    def subset(self, kept: Flags, statistics: FeatureStatistics | None = None) -> Inputs:
        """Return the inputs of some of the samples.

        Args:
            kept: The mask of these samples, `[samples]`.
            statistics: Their statistics, where they follow from others; computed from the rows by default.
        """
        rows = np.arange(len(self._labels))[self._chosen][kept]
        return Inputs(self._features, self._labels, self._probabilities, self.seed, self.facts, rows, statistics)

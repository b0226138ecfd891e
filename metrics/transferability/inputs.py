"""What transferability metrics are computed from: one source model on one target, or on many of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array
from headstart.metrics.transferability.feature_statistics import (
    FeatureStatistics,
    class_slices,
    sort_by_class,
    sum_by_class,
)
from headstart.metrics.transferability.left_out import RemainingStatistics
from headstart.metrics.transferability.source_facts import SourceFacts

# Second moments of all classes together, in bytes. Beyond it a target's Gram matrix is computed from its rows.
MOMENTS_BUDGET = 2**30


class Inputs:
    """What the metrics of one source model on one target are computed from.

    Args:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        probabilities: Of the source head's classes, `[samples, source classes]`; None where there is no head.
        seed: Of the metrics that draw.
        rows: Which of these samples the target has; all of them by default. They are gathered when asked for.
        statistics: Of these rows, where they follow from others; computed from the rows by default.
        facts: What is known of the source model, whatever the target.
    """

    def __init__(
        self,
        features: NDArray[np.floating[Any]],
        labels: NDArray[np.int64],
        probabilities: NDArray[np.float64] | None = None,
        seed: int = 0,
        rows: NDArray[np.int64] | slice = slice(None),
        statistics: FeatureStatistics | None = None,
        facts: SourceFacts = SourceFacts(),  # noqa: B008 - frozen
    ) -> None:
        self._features, self._labels, self._probabilities = features, labels, probabilities
        self._rows, self._statistics = rows, statistics
        self.seed, self.facts = seed, facts

    @cached_property
    def features(self) -> NDArray[np.floating[Any]]:
        """The features, `[samples, features]`."""
        return self._features[self._rows]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The labels, `[samples]`."""
        return self._labels[self._rows]

    @property
    def has_head(self) -> bool:
        """Whether there are probabilities of a source head."""
        return self._probabilities is not None

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

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Place of every row of the statistics among these samples, `[samples]`."""
        return np.argsort(self.labels, kind="stable")

    def remaining(self, kept: NDArray[np.bool_]) -> Inputs:
        """Give the same of some of the samples, `[samples]`, at least one of each class."""
        rows = np.arange(len(self._labels))[self._rows][kept]
        statistics = RemainingStatistics(self.statistics, kept[self.order])
        return Inputs(self._features, self._labels, self._probabilities, self.seed, rows, statistics, self.facts)


@dataclass(frozen=True)
class Pool:
    """One source model on many targets that are made of classes of one data set.

    Attributes:
        features: Of the data set, `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        head: Probabilities of the source head's classes, `[samples, source classes]`; None where there is no head.
        targets: Classes of each target, by their places among the labels that occur, ascending.
        seed: Of the metrics that draw.
        facts: What is known of the source model, whatever the target.
    """

    features: NDArray[np.floating[Any]]
    labels: NDArray[np.int64]
    head: NDArray[np.float64] | None
    targets: Sequence[NDArray[np.int64]]
    seed: int = 0
    facts: SourceFacts = field(default=SourceFacts())

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
        statistics = TargetStatistics(dataset, chosen)
        return Inputs(self.features, self.labels, self.head, self.seed, rows, statistics, self.facts)


class DatasetStatistics:
    """Features of a data set by class, with the sums from which those of any set of its classes follow.

    Memory: one copy of the features in float64, and second moments of `classes * features^2` numbers where these are
    within `MOMENTS_BUDGET`.

    Args:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.

    Attributes:
        labels: The labels that occur, ascending; below, a class is its place among these.
        classes: Number of classes.
        sizes: Samples of each class, `[classes]`.
        order: Place in `features` of every row of `within`, `[samples]`.
        within: Features less the mean of their class, sorted by class, `[samples, features]`.
        means: Mean of each class, `[classes, features]`.

    Raises:
        ValueError: The shapes do not fit, or there are numbers that are not finite, or labels that are not
            integers from 0.
    """

    def __init__(self, features: NDArray[np.floating], labels: NDArray[np.integer]) -> None:
        whole = FeatureStatistics(features, labels)
        self.order, codes, self.labels, self.sizes = sort_by_class(labels, whole.samples)
        self.classes = len(self.sizes)
        self.within = whole.centred
        # Relative to one of its rows, a class of equal rows has a mean and deviations without rounding errors.
        origins = self.within[np.cumsum(self.sizes) - self.sizes]
        self.within -= origins[codes]
        offsets = sum_by_class(self.within, self.sizes) / self.sizes[:, None]
        self.within -= offsets[codes]
        self.means = whole.mean + origins + offsets
        self.rows = class_slices(self.sizes)

    @cached_property
    def moments(self) -> NDArray[np.float64] | None:
        """Sums of outer products of `within` by class, `[classes, features, features]`; None beyond the budget."""
        features = self.within.shape[1]
        if self.classes * features**2 * self.within.itemsize > MOMENTS_BUDGET:
            return None
        found = np.empty((self.classes, features, features))
        for moment, rows in zip(found, self.rows, strict=True):
            x = self.within[rows]
            # NumPy sees that both factors are the same only where it allocates the product.
            moment[...] = x.T @ x
        return found


class TargetStatistics(FeatureStatistics):
    """Statistics of the features of some classes, from those of the data set.

    They take the place of `FeatureStatistics` of the rows of these classes in any metric. Where the second moments of
    classes are there, and samples are no fewer than features, the Gram matrix is their sum and no row is touched.

    Args:
        dataset: Statistics of the data set.
        chosen: The classes, ascending, `[classes of the target]`.
    """

    def __init__(self, dataset: DatasetStatistics, chosen: NDArray[np.int64]) -> None:
        self.dataset = dataset
        self.chosen = chosen
        self.class_sizes = dataset.sizes[chosen]
        self.samples, self.dimensions = int(self.class_sizes.sum()), dataset.means.shape[1]
        self.counts = self.class_sizes.astype(np.float64)[:, None]
        self.labels = np.repeat(np.arange(len(chosen)), self.class_sizes)
        origin = dataset.means[chosen[0]]
        offsets = dataset.means[chosen] - origin
        mean = (offsets * self.counts).sum(0) / self.samples
        self.mean = origin + mean
        self.class_means = offsets - mean

    @cached_property
    def centred(self) -> Array:
        """Features less the target's mean, sorted by class, `[samples, features]`."""
        blocks = [self.dataset.within[self.dataset.rows[label]] for label in self.chosen]
        found = np.concatenate(blocks)
        found += self.class_means[self.labels]
        return found

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, of features where `features <= samples`, else of samples."""
        if self.dimensions > self.samples or (moments := self.dataset.moments) is None:
            return super().gram
        found = (self.class_means * self.counts).T @ self.class_means
        for label in self.chosen:
            found += moments[label]
        return found

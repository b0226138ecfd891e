"""The inputs of transferability metrics: one source model on one target, or on many targets sampled from a data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Flags, Floats, Indices
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.feature_statistics import (
    FeatureStatistics,
    class_slices,
    sort_by_class,
    sum_by_class,
)
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


# Second moments of all classes together, in bytes. Beyond it a target's Gram matrix is computed from its rows.
MOMENTS_BUDGET = 2**30


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
        rows = np.arange(len(self._labels))[self._chosen][kept]
        return self._subset(rows, RemainingStatistics(self.statistics, kept[self.order]))

    def _subset(self, rows: NDArray[np.int64], statistics: FeatureStatistics) -> Inputs:
        return Inputs(self._features, self._labels, self._probabilities, self.seed, self.facts, rows, statistics)


class Pool(Inputs):
    """The inputs of the metrics of one source model on many targets that are made of classes of one data set.

    Args:
        features: Of the data set, `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        probabilities: Of the source head's classes, `[samples, source classes]`; None where there is no head.
        targets: Classes of each target, ascending, as indices into the labels that occur.
        seed: Seed of the metrics that sample.
        facts: What is known of the source model, whatever the target.
    """

    def __init__(
        self,
        features: NDArray[np.floating[Any]],
        labels: NDArray[np.int64],
        probabilities: Array | None,
        targets: Sequence[NDArray[np.int64]],
        seed: int = 0,
        facts: SourceFacts = SourceFacts(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(features, labels, probabilities, seed, facts)
        self.targets = targets

    @cached_property
    def dataset(self) -> DatasetStatistics:
        """Statistics of the data set, which all targets share."""
        return DatasetStatistics(self.features, self.labels)

    @cached_property
    def holds(self) -> Flags:
        """Whether each target holds each class, `[targets, classes]`."""
        return np.stack([np.isin(np.arange(self.dataset.classes), classes) for classes in self.targets])

    def inputs(self, classes: NDArray[np.int64]) -> Inputs:
        """Return the inputs of the metrics on the target of some classes.

        Its rows stay in the order of the data set; its statistics follow from those of the data set.
        """
        dataset = self.dataset
        rows = np.sort(np.concatenate([dataset.order[dataset.rows[label]] for label in classes]))
        return self._subset(rows, TargetStatistics(dataset, classes))


class DatasetStatistics:
    """Features of a data set by class, with the sums from which those of any set of its classes follow.

    Memory: one copy of the features in float64, and second moments of `classes * features^2` numbers where these are
    within `MOMENTS_BUDGET`.

    Args:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.

    Attributes:
        classes: Number of classes; below, a class is its index among the labels that occur, ascending.
        sizes: Samples of each class, `[classes]`.
        order: Index in `features` of every row of `within`, `[samples]`.
        rows: The rows of each class in `within`.
        within: Features less the mean of their class, sorted by class, `[samples, features]`.
        means: Mean of each class, `[classes, features]`.

    Raises:
        ValueError: The shapes do not fit, or there are numbers that are not finite, or labels that are not
            integers from 0.
    """

    def __init__(self, features: NDArray[np.floating], labels: NDArray[np.integer]) -> None:
        whole = FeatureStatistics(features, labels)
        self.order, codes, _, self.sizes = sort_by_class(labels, whole.samples)
        self.classes = len(self.sizes)
        self.rows = class_slices(self.sizes)
        self.within = whole.centred

        # Relative to one of its rows, a class of equal rows has a mean and deviations without rounding errors.
        origins = self.within[np.cumsum(self.sizes) - self.sizes]
        self.within -= origins[codes]
        offsets = sum_by_class(self.within, self.sizes) / self.sizes[:, None]
        self.within -= offsets[codes]
        self.means = whole.mean + origins + offsets

    @cached_property
    def moments(self) -> Floats | None:
        """Sums of outer products of `within` by class, `[classes, features, features]`; None beyond the budget."""
        features = self.within.shape[1]
        if self.classes * features**2 * self.within.itemsize > MOMENTS_BUDGET:
            return None
        moments = np.empty((self.classes, features, features))
        for moment, rows in zip(moments, self.rows, strict=True):
            x = self.within[rows]
            # NumPy sees that both factors are the same only where it allocates the product.
            moment[...] = x.T @ x
        return moments


class TargetStatistics(FeatureStatistics):
    """Statistics of the features of some classes, from those of the data set.

    They replace `FeatureStatistics` of the rows of these classes in any metric. With the second moments of the classes,
    and no fewer samples than features, the Gram matrix is their sum and no row is read.

    Args:
        dataset: Statistics of the data set.
        chosen: The classes, ascending, `[classes of the target]`.
    """

    def __init__(self, dataset: DatasetStatistics, chosen: NDArray[np.int64]) -> None:
        self.dataset, self.chosen = dataset, chosen
        self.class_sizes = dataset.sizes[chosen]
        self.samples, self.dimensions = int(self.class_sizes.sum()), dataset.means.shape[1]
        self.counts = self.class_sizes.astype(np.float64)[:, None]
        self.labels = np.repeat(np.arange(len(chosen)), self.class_sizes)
        self.order = np.concatenate([dataset.order[dataset.rows[label]] for label in chosen])

        origin = dataset.means[chosen[0]]
        offsets = dataset.means[chosen] - origin
        mean = (offsets * self.counts).sum(0) / self.samples
        self.mean = origin + mean
        self.class_means = offsets - mean

    @cached_property
    def centred(self) -> Array:
        """Features less the target's mean, sorted by class, `[samples, features]`."""
        rows = np.concatenate([self.dataset.within[self.dataset.rows[label]] for label in self.chosen])
        rows += self.class_means[self.labels]
        return rows

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, of features where `features <= samples`, else of samples."""
        if self.dimensions > self.samples or (moments := self.dataset.moments) is None:
            return super().gram
        gram = (self.class_means * self.counts).T @ self.class_means
        for label in self.chosen:
            gram += moments[label]
        return gram

"""What every target that is made of classes of one data set shares: sums over classes, gathered once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metrics.arrays import Array
from metrics.transferability.feature_statistics import FeatureStatistics, sort_by_class, sum_by_class

# Second moments of all classes together, in bytes. Beyond it a target's Gram matrix is computed from its rows.
MOMENTS_BUDGET = 2**30


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
        ends = np.cumsum(self.sizes).tolist()
        self.rows = [slice(end - size, end) for end, size in zip(ends, self.sizes.tolist(), strict=True)]

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
        self.class_labels = dataset.labels[chosen]
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

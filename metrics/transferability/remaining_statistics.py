"""Statistics of some of the samples of a target, from those of all."""

from functools import cached_property

import numpy as np

from headstart.metrics.arrays import Array, Flags, like
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, sum_by_class


class RemainingStatistics(FeatureStatistics):
    """Statistics of some of the samples, from those of all.

    They replace `FeatureStatistics` of these rows in any metric. The Gram matrix of features is that of all samples
    less that of the rows left out. The Gram matrix of samples is a part of that of all.

    Args:
        whole: Statistics of all samples.
        kept: Mask of the rows of `whole.centred`, at least one of each class, `[samples]`.
    """

    def __init__(self, whole: FeatureStatistics, kept: Flags) -> None:
        self.whole, self.kept = whole, kept
        self.indices = like(np.flatnonzero(kept), whole.centred)
        self.centred = whole.centred[self.indices]
        self.samples, self.dimensions = self.centred.shape
        self.labels, self.order = whole.labels[kept], whole.order[kept]
        self.class_sizes = np.bincount(self.labels).astype(np.int64)
        self.counts = like(self.class_sizes.astype(np.float64), self.centred)[:, None]

        sums = sum_by_class(self.centred, self.class_sizes)
        self.offset = sums.sum(0) / self.samples
        self.centred -= self.offset
        self.mean = whole.mean + self.offset
        self.class_means = sums / self.counts - self.offset

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, of features where `features <= samples`, else of samples."""
        whole = self.whole
        if self.dimensions <= self.samples:
            left_out = whole.centred[like(np.flatnonzero(~self.kept), whole.centred)]
            return whole.gram - left_out.T @ left_out - self.samples * self.offset[:, None] * self.offset
        if whole.dimensions <= whole.samples:
            return super().gram
        products = whole.gram[self.indices][:, self.indices]
        means = products.mean(0)
        return products - means - means[:, None] + means.mean()

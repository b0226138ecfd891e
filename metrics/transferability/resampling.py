"""How sure a score is: the same metric on photos that are drawn again, class by class."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metrics.arrays import Array, like, namespace
from metrics.transferability.feature_statistics import FeatureStatistics, sum_by_class


def draw_again(labels: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """Draw samples again with replacement, of each class as many as it has: a bootstrap with classes as strata.

    Source: Bradley Efron and Robert J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993, chapter 8.

    Args:
        labels: Integers from 0, `[samples]`.
        resamples: How often.
        seed: Of the draw.

    Returns:
        How often each sample comes, `[resamples, samples]`.
    """
    generator = np.random.default_rng((seed, len(labels)))
    counts = np.zeros((resamples, len(labels)), dtype=np.int64)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        counts[:, places] = generator.multinomial(len(places), np.full(len(places), 1 / len(places)), resamples)
    return counts


class ResampledStatistics(FeatureStatistics):
    """Statistics of samples of which each comes so many times, from those of the samples.

    They take the place of `FeatureStatistics` of the repeated rows in any metric. The Gram matrix is of features the
    product of the rows that differ, three fifths of a bootstrap's, and of samples a part of that of all.

    Args:
        statistics: Statistics of the samples.
        counts: How often each comes, in the order of `statistics.centred`, `[samples]`; each class has one at least.
    """

    def __init__(self, statistics: FeatureStatistics, counts: NDArray[np.int64]) -> None:
        rows = statistics.centred
        self.whole = statistics
        self.class_sizes = np.bincount(statistics.labels, counts).astype(np.int64)
        self.samples, self.dimensions = int(counts.sum()), statistics.dimensions
        self.labels = np.repeat(np.arange(len(self.class_sizes)), self.class_sizes)
        self.counts = like(self.class_sizes.astype(np.float64), rows)[:, None]
        self.times = like(counts.astype(np.float64), rows)
        self.places = like(np.repeat(np.arange(len(counts)), counts), rows)
        sums = sum_by_class(rows * self.times[:, None], statistics.class_sizes)
        self.offset = sums.sum(0) / self.samples
        self.mean = statistics.mean + self.offset
        self.class_means = sums / self.counts - self.offset

    @cached_property
    def centred(self) -> Array:
        """Features less their mean, sorted by class, `[samples, features]`."""
        return self.whole.centred[self.places] - self.offset

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, of features where `features <= samples`, else of samples."""
        if self.dimensions <= self.samples:
            present = self.times > 0
            rows = self.whole.centred[present] - self.offset
            rows *= namespace(rows).sqrt(self.times[present])[:, None]
            return rows.T @ rows
        if self.whole.dimensions <= self.whole.samples:
            return super().gram
        products = self.whole.gram[self.places][:, self.places]
        means = products.sum(0) / self.samples
        return products - means - means[:, None] + means.sum() / self.samples

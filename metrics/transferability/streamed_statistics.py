"""Statistics of features that are too many for memory: they are read in parts, from the disk where they lie there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Flags, Floats, Indices, in_place, is_tensor
from headstart.metrics.transferability.feature_statistics import (
    GREATEST_MAGNITUDE,
    FeatureStatistics,
    Spectrum,
    check_magnitude,
    largest_magnitude,
    nonzero_singular_values,
    sort_by_class,
    sum_by_class,
)
from headstart.metrics.transferability.remaining_statistics import RemainingStatistics

# Bytes of features in float64 up to which they are held in memory, and of a part that is read at once.
IN_MEMORY, PART = 2**30, 2**25


def statistics_of(features: Array | FeatureStatistics, labels: Array | None) -> FeatureStatistics:
    """Return statistics, of features that are streamed where a copy in float64 takes more than `IN_MEMORY` bytes.

    Args:
        features: `[samples, features]`; or their statistics, which are returned.
        labels: Integers from 0, `[samples]`; None with statistics.

    Raises:
        ValueError: They do not fit, or labels are missing, or passed together with statistics.
    """
    if isinstance(features, FeatureStatistics):
        if labels is not None:
            raise ValueError("labels must be left out where features are FeatureStatistics, which have labels")
        return features
    if labels is None:
        raise ValueError("labels are missing; give one for every row of features")

    values = in_place("features", features)
    is_large = values.ndim == 2 and 8 * math.prod(values.shape) > IN_MEMORY
    # The Gram matrix of fewer samples than features needs all features at once; a part of the samples may be left out.
    if is_large and values.shape[0] >= 2 * values.shape[1] and not is_tensor(values):
        return StreamedStatistics(values, labels)
    return FeatureStatistics(values, labels)


def remaining_statistics(whole: FeatureStatistics, kept: Flags) -> FeatureStatistics:
    """Return the statistics of some of the samples, from those of all.

    Args:
        whole: Statistics of all samples.
        kept: Mask of the rows of `whole.centred`, at least one of each class, `[samples]`.
    """
    if isinstance(whole, StreamedStatistics) and kept.sum() >= whole.dimensions:
        return StreamedRemaining(whole, kept)
    return RemainingStatistics(whole, kept)


class StreamedStatistics(FeatureStatistics):
    """Statistics of features that are copied to memory only for metrics that use `centred`, and then read from there.

    A first pass over the features adds up the classes, a second one computes the Gram matrix. The numbers are those of
    `FeatureStatistics` up to rounding errors.

    Args:
        features: Real numbers, `[samples, features]`, more samples than features; an array, or rows that are read when
            they are indexed.
        labels: Integers from 0, `[samples]`.

    Raises:
        ValueError: As for `FeatureStatistics`.
    """

    def __init__(self, features: Array, labels: Array) -> None:
        self.features, (self.samples, self.dimensions) = features, features.shape
        self.order, self.labels, _, self.class_sizes = sort_by_class(labels, self.samples)
        # Relative to one of the rows, constant features are exactly 0.
        self.origin = np.array(features[:1], np.float64)[0]

        largest = 0.0
        self.sums = np.zeros((len(self.class_sizes), self.dimensions))
        for positions, part in self._read(np.argsort(self.order)):
            largest = max(largest, largest_magnitude(part, self.order[positions]))
            if largest > GREATEST_MAGNITUDE:
                break
            part -= self.origin
            _add_by_class(self.sums, part, self.labels[positions])
        check_magnitude(largest)
        self._set_means()

    def _set_means(self) -> None:
        self.counts = self.class_sizes.astype(np.float64)[:, None]
        self.offset = self.sums.sum(0) / self.samples
        self.mean = self.origin + self.offset
        self.class_means = self.sums / self.counts - self.offset

    @cached_property
    def centred(self) -> Array:
        """Features less their mean, sorted by class, `[samples, features]`, all in memory."""
        rows = np.empty((self.samples, self.dimensions))
        for positions, part in self.parts():
            rows[positions] = part
        return rows

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, `[features, features]`."""
        # NumPy sees that both factors are the same only where it allocates the product.
        return sum(part.T @ part for _, part in self.parts())

    def rows(self, chosen: slice | Indices) -> Array:
        """Return some rows of `centred`."""
        if "centred" in self.__dict__:
            return self.centred[chosen]
        return self._centre(np.array(self.features[self.order[chosen]], np.float64))

    def map_rows(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function to the rows of `centred`, part by part."""
        results = np.empty(0)
        for positions, part in self.parts():
            found = function(part)
            results = results if len(results) else np.empty((self.samples, *found.shape[1:]))
            results[positions] = found
        return results

    def decompose_rows(self) -> Spectrum:
        """Return the spectrum of the Gram matrix of the features as they are, by way of their QR decomposition."""
        triangle: Array = np.empty((0, self.dimensions))
        for _, part in self.parts():
            triangle = np.linalg.qr(np.concatenate([triangle, part + self.mean]), mode="r")
        _, singular, right = np.linalg.svd(triangle)
        sums = (self.class_means + self.mean) * self.counts
        return Spectrum(nonzero_singular_values(singular, self.samples) ** 2, right.T, sums @ right.T)

    def parts(self, kept: Flags | slice = slice(None)) -> Iterator[tuple[Indices, Floats]]:
        """Iterate over centred features in the order of the samples, in which they mostly lie on the disk.

        Args:
            kept: Mask of the rows of `centred` that are read; all by default.

        Yields:
            Indices of some rows of `centred`, and these rows.
        """
        chosen = np.arange(self.samples)[kept]
        if "centred" in self.__dict__:
            for positions in self._split(chosen):
                yield positions, self.centred[positions]
            return
        for positions, part in self._read(chosen[np.argsort(self.order[chosen])]):
            yield positions, self._centre(part)

    def _centre(self, part: Floats) -> Floats:
        part -= self.origin
        part -= self.offset
        return part

    def _read(self, positions: Indices) -> Iterator[tuple[Indices, Floats]]:
        for some in self._split(positions):
            yield some, np.array(self.features[self.order[some]], np.float64)

    def _split(self, positions: Indices) -> Iterator[Indices]:
        step = max(1, PART // (8 * self.dimensions))
        for first in range(0, len(positions), step):
            yield positions[first : first + step]


class StreamedRemaining(StreamedStatistics):
    """Statistics of some of the samples, for which only the others are read.

    Args:
        whole: Statistics of all samples.
        kept: Mask of the rows of `whole.centred`, at least one of each class, `[samples]`.
    """

    def __init__(self, whole: StreamedStatistics, kept: Flags) -> None:
        self.whole, self.left_out = whole, ~kept
        self.features, self.origin, self.dimensions = whole.features, whole.origin, whole.dimensions
        self.labels, self.order = whole.labels[kept], whole.order[kept]
        self.samples, self.class_sizes = len(self.labels), np.bincount(self.labels).astype(np.int64)

        self.sums = whole.sums.copy()
        for positions, part in whole.parts(self.left_out):
            # They may be rows in memory.
            _add_by_class(self.sums, -(part + whole.offset), whole.labels[positions])
        self._set_means()

    @cached_property
    def centred(self) -> Array:
        """Features less their mean, sorted by class, `[samples, features]`, all in memory."""
        if "centred" not in self.whole.__dict__:
            return super().centred
        rows = self.whole.centred[~self.left_out]
        rows -= self.offset - self.whole.offset
        return rows

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the centred features, `[features, features]`."""
        shift = self.offset - self.whole.offset
        gram = self.whole.gram - self.samples * shift[:, None] * shift
        for _, part in self.whole.parts(self.left_out):
            gram -= part.T @ part
        return gram


def _add_by_class(sums: Floats, part: Floats, labels: NDArray[np.int64]) -> None:
    """Add rows to the sums of their classes, `[classes, features]`."""
    order, _, classes, sizes = sort_by_class(labels, len(labels))
    sums[classes] += sum_by_class(part[order], sizes)

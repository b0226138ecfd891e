"""Statistics that the transferability metrics of one source model on one target share: Gram matrix and spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Floats, as_array, to_float64

# The variants of a metric whose paper and released program differ.
Variant = Literal["released", "published"]
# By how much the squared mean may exceed the squared spread in a Gram matrix, whose eigenvalues lose as many digits.
MEAN_SHARE = 100
# Numbers up to which sums by class are one call.
SMALL = 2**20


@dataclass(frozen=True)
class Spectrum:
    """An eigendecomposition of a Gram matrix, with the classes in its coordinates.

    Attributes:
        eigenvalues: From the largest to the smallest, 0 where not distinguishable from 0, `[r]`.
        vectors: Eigenvectors as columns: of features where `features <= samples`, else of samples.
        class_sums: Sum over the samples of every class of their coordinates along the axes of unit length in feature
            space, `[classes, r]`.
    """

    eigenvalues: Floats
    vectors: Floats
    class_sums: Floats

    @cached_property
    def rank(self) -> int:
        """The number of eigenvalues above 0."""
        return int((self.eigenvalues > 0).sum())


class FeatureStatistics:
    """Features and labels of one source model on one target, checked, in float64, with the statistics of metrics.

    Statistics are computed on first use and stored, so that metrics share them. Samples are sorted by class, and
    classes are numbered without gaps. Memory: one copy of the features in float64, and up to three matrices of
    `min(samples, features)` squared.

    Args:
        features: `[samples, features]`, an array, or a tensor, of which a copy is computed with on the processor.
        labels: Integers from 0, `[samples]`; numbers that do not occur are no classes.

    Attributes:
        samples: Number of samples.
        dimensions: Number of features.
        class_sizes: How many samples each class has, `[classes]`.
        counts: The same as numbers of the features' type, `[classes, 1]`.
        labels: Class of every row of `centred`, counted from 0 without gaps, ascending, `[samples]`.
        order: Numbers by which the rows of `centred` are as the samples came, ascending, `[samples]`.
        mean: Mean of the features, `[features]`.
        centred: Features less their mean, sorted by class, `[samples, features]`.
        class_means: Mean of every class, less the mean of all, `[classes, features]`.

    Raises:
        ValueError: The shapes do not fit, a number is not finite, or labels are not integers from 0.
    """

    def __init__(self, features: Array, labels: Array) -> None:
        values = to_float64("features", features)
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(f"features must be [samples, features], at least one of each, not {list(values.shape)}")
        # It is NaN if any feature is.
        if not np.isfinite(float(np.maximum(values.max(), -values.min()))):
            row = np.flatnonzero(~np.isfinite(values).all(1))[0]
            raise ValueError(f"features must be finite; row {row} is not")

        self.samples, self.dimensions = values.shape
        self.order, self.labels, _, self.class_sizes = sort_by_class(labels, self.samples)
        self.counts = self.class_sizes.astype(np.float64)[:, None]

        # Relative to one of the rows, constant features are exactly 0.
        origin = values[0]
        self.centred = values[self.order]
        self.centred -= origin
        sums = self.class_sums(self.centred)
        mean = sums.sum(0) / self.samples
        self.centred -= mean
        self.mean = origin + mean
        self.class_means = sums / self.counts - mean

    @property
    def classes(self) -> int:
        """The number of classes that occur."""
        return len(self.class_sizes)

    @cached_property
    def gram(self) -> Floats:
        """Gram matrix of the centred features, of features where `features <= samples`, else of samples."""
        x = self.centred
        return x.T @ x if self.dimensions <= self.samples else x @ x.T

    @cached_property
    def spectrum(self) -> Spectrum:
        """Spectrum of the centred Gram matrix: of the covariance, times the number of samples."""
        return self._decompose(self.gram, self.class_means * self.counts)

    @cached_property
    def uncentred_spectrum(self) -> Spectrum:
        """Spectrum of the Gram matrix of the features as they are."""
        # Beside a large mean, rounding of a Gram matrix removes the spread; the features themselves still have it.
        if self.samples * float((self.mean**2).sum()) > MEAN_SHARE * float(self.gram.diagonal().sum()):
            return self._decompose_rows()
        if self.dimensions <= self.samples:
            gram = self.gram + self.samples * self.mean[:, None] * self.mean
        else:
            products = self.centred @ self.mean
            gram = self.gram + products[:, None] + products + self.mean @ self.mean
        return self._decompose(gram, (self.class_means + self.mean) * self.counts)

    def _decompose(self, gram: Floats, class_sums: Floats) -> Spectrum:
        rounding = max(self.samples, self.dimensions) * np.finfo(np.float64).eps
        eigenvalues, vectors = decompose(gram, rounding)
        if self.dimensions <= self.samples:
            return Spectrum(eigenvalues, vectors, class_sums @ vectors)
        coordinates = vectors * np.sqrt(eigenvalues)
        return Spectrum(eigenvalues, vectors, self.class_sums(coordinates))

    def _decompose_rows(self) -> Spectrum:
        """Return the spectrum of the Gram matrix of the features as they are, without computing that matrix."""
        rows = self.centred + self.mean
        left, singular, right = np.linalg.svd(rows, full_matrices=False)
        least = max(rows.shape) * np.finfo(np.float64).eps * singular[0]
        singular = np.where(singular > least, singular, np.zeros_like(singular))
        vectors = right.T if self.dimensions <= self.samples else left
        return Spectrum(singular**2, vectors, self.class_sums(left * singular))

    @property
    def class_rows(self) -> list[slice]:
        """The rows of `centred` of every class."""
        return class_slices(self.class_sizes)

    def class_sums(self, rows: Floats) -> Floats:
        """Add up rows of every class, `[classes, axes]`, of rows `[samples, axes]` in the order of `centred`."""
        return sum_by_class(rows, self.class_sizes)

    def class_moments(self, rows: Floats) -> tuple[Floats, Floats]:
        """Compute the means of classes, and the deviations from them, of rows in the order of `centred`.

        Args:
            rows: `[samples, axes]`.

        Returns:
            `[classes, axes]` and `[samples, axes]`.
        """
        means = self.class_sums(rows) / self.counts
        deviations = means[self.labels]
        return means, np.subtract(rows, deviations, out=deviations)

    def principal_components(self, count: int) -> Floats:
        """Project the centred features onto their first axes, `[samples, min(count, samples, features)]`."""
        vectors = self.spectrum.vectors[:, :count]
        if self.dimensions <= self.samples:
            return self.centred @ vectors
        return vectors * np.sqrt(self.spectrum.eigenvalues[:count])


def statistics_of(features: Array | FeatureStatistics, labels: Array | None) -> FeatureStatistics:
    """Return statistics.

    Args:
        features: `[samples, features]`; or their statistics, which are returned.
        labels: Integers from 0, `[samples]`; None with statistics.

    Raises:
        ValueError: As for `FeatureStatistics`; or labels are missing, or passed together with statistics.
    """
    if isinstance(features, FeatureStatistics):
        if labels is not None:
            raise ValueError("labels must be left out where features are FeatureStatistics, which have labels")
        return features
    if labels is None:
        raise ValueError("labels are missing; give one for every row of features")
    return FeatureStatistics(features, labels)


def decompose(gram: Floats, rounding: float) -> tuple[Floats, Floats]:
    """Decompose a Gram matrix `[m, m]`, symmetric with eigenvalues of 0 or more.

    Args:
        gram: The matrix.
        rounding: Relative error of its entries; eigenvalues up to this share of the largest are set to 0.

    Returns:
        Eigenvalues from the largest to the smallest `[m]`, and eigenvectors as columns `[m, m]`.
    """
    eigenvalues, vectors = np.linalg.eigh(gram)
    eigenvalues, vectors = np.flip(eigenvalues, (0,)), np.flip(vectors, (1,))
    least = rounding * float(eigenvalues[0])
    return np.where(eigenvalues > least, eigenvalues, np.zeros_like(eigenvalues)), vectors


def sort_by_class(
    labels: Array, samples: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Check labels, number the classes that occur without gaps, and sort the samples by class.

    Returns:
        The order of samples `[samples]`, the class of each in that order `[samples]`, the labels of the classes
        `[classes]` and their sizes `[classes]`.

    Raises:
        ValueError: The labels are of another shape, or not integers from 0.
    """
    array = check_labels("labels", labels, samples)
    classes, codes, sizes = np.unique(array, return_inverse=True, return_counts=True)
    if len(classes) and classes[0] < 0:
        raise ValueError(f"labels must be 0 or more, not {classes[0]}")
    order = np.argsort(codes, kind="stable")
    return order, codes[order].astype(np.int64), classes, sizes.astype(np.int64)


def check_labels(name: str, labels: Array, samples: int) -> NDArray[Any]:
    """Check that labels are one integer for every sample, and return them as an array."""
    array = as_array(name, labels)
    if tuple(array.shape) != (samples,):
        raise ValueError(f"{name} must be [{samples}], one for every sample, not {list(array.shape)}")
    if array.dtype.kind not in "iub":
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    return array


def class_slices(class_sizes: NDArray[np.int64]) -> list[slice]:
    """Return the slice of every class in rows that are sorted by class."""
    ends = np.cumsum(class_sizes)
    return list(map(slice, ends - class_sizes, ends))


def sum_by_class(rows: Floats, class_sizes: NDArray[np.int64]) -> Floats:
    """Add up the rows of every class, `[classes, features]`, of rows `[samples, features]` that are sorted by class."""
    if rows.size < SMALL:
        return np.add.reduceat(rows, np.cumsum(class_sizes) - class_sizes, axis=0)
    # A tenth of the time of numpy.add.reduceat, which goes along columns; of few rows that is faster.
    return np.stack([rows[part].sum(0) for part in class_slices(class_sizes)])

"""All samples that the orderings have seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart


def with_room(tensor: Tensor, axes: Sequence[int], needed: int, most: int) -> Tensor:
    """Return a tensor with enough room along some axes, so that its memory follows the samples seen.

    Room is doubled whenever it does not suffice: all copies together are less than twice the final tensor.

    Args:
        tensor: The tensor, of the same length along these axes.
        axes: The axes.
        needed: Least length along them.
        most: Length above which no more room than needed is allocated.

    Returns:
        The tensor itself where it is long enough, else a longer one that begins with its values and ends with zeros.
    """
    length = tensor.shape[axes[0]]
    if length >= needed:
        return tensor
    shape, old = list(tensor.shape), [slice(None)] * tensor.dim()
    for axis in axes:
        shape[axis], old[axis] = max(needed, min(2 * length, most)), slice(length)
    roomy = tensor.new_zeros(shape)
    roomy[tuple(old)] = tensor
    return roomy


# Bytes of features that are gathered at once: they stay in a processor's cache until they are used.
GATHERED = 16 * 2**20
# Bytes on other devices: enough to keep the device busy.
GATHERED_ELSEWHERE = 2**30


class SamplesSeen(nn.Module):
    """The samples that the orderings have seen, in order, and their labels.

    Features are not copied: a sample is its position in `Start.samples`, which all orderings share. Where there is no
    such matrix, the features, or the inputs of a backbone, are copied batch by batch.

    Args:
        start: What the method starts from.
    """

    def __init__(self, start: MethodStart) -> None:
        super().__init__()
        self.count = 0
        self.max_samples = start.max_samples
        self.shared = start.samples is not None
        self.matrix = torch.empty(0, start.features, device=start.device) if start.samples is None else start.samples
        empty = torch.empty(start.orderings, 0, dtype=torch.int64)
        self._indices: Tensor = nn.Buffer(empty, persistent=False)
        self._labels: Tensor = nn.Buffer(empty.clone(), persistent=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> SamplesSeen:
        """Return a copy that shares its values: they never change, and later samples are written elsewhere."""
        other = copy(self)
        other._buffers = {"_indices": self.indices, "_labels": self.labels}
        if not self.shared:
            other.matrix = self.matrix[: self.indices.numel()]
        return other

    @torch.no_grad()
    def append(self, features: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Add a batch.

        Args:
            features: `[orderings, batch, features]`, or inputs `[orderings, batch, ...]`, of one shape and type.
            labels: `[orderings, batch]`.
            indices: `[orderings, batch]`, the method's `indices`.
        """
        before, self.count = self.count, self.count + labels.shape[1]
        if not self.shared:
            if not before:
                self.matrix = features.new_empty(0, *features.shape[2:])
            first, end = len(labels) * before, len(labels) * self.count
            self.matrix = with_room(self.matrix, [0], end, len(labels) * self.max_samples)
            self.matrix[first:end] = features.flatten(0, 1)
            indices = torch.arange(first, end, device=labels.device).view_as(labels)

        self._indices = with_room(self._indices, [1], self.count, self.max_samples)
        self._labels = with_room(self._labels, [1], self.count, self.max_samples)
        self._indices[:, before : self.count] = indices
        self._labels[:, before : self.count] = labels

    @property
    def indices(self) -> Tensor:
        """A view of the positions of all samples seen in `matrix`, `[orderings, count]`."""
        return self._indices[:, : self.count]

    @property
    def labels(self) -> Tensor:
        """A view of the labels of all samples seen, `[orderings, count]`."""
        return self._labels[:, : self.count]

    def features(self, indices: Tensor) -> Tensor:
        """Gather the features of some samples of every ordering.

        Args:
            indices: Their indices among the samples seen, `[samples]`, the same for all orderings.

        Returns:
            `[orderings, samples, features]`, or inputs likewise.
        """
        flat = functional.embedding(self.indices[:, indices], self.matrix.flatten(1))
        return flat.view(*flat.shape[:2], *self.matrix.shape[1:])

    def groups(self, values: int = 0) -> Iterator[slice]:
        """Split the orderings into groups whose features can be gathered together.

        Args:
            values: Values in memory for every sample besides the features.
        """
        ordering_bytes = 4 * max(self.count, 1) * (self.matrix.shape[1] + values)
        size = max(1, (GATHERED if self.matrix.device.type == "cpu" else GATHERED_ELSEWHERE) // ordering_bytes)
        for first in range(0, len(self.indices), size):
            yield slice(first, first + size)

    def gather(self, group: slice) -> Tensor:
        """Gather the features of all samples of some orderings, `[orderings of the group, count, features]`."""
        return functional.embedding(self.indices[group], self.matrix)


# Norms under which features count as zero, as in `torch.nn.functional.normalize`.
LEAST_NORM = 1e-12


class SeenProducts(nn.Module):
    """The samples that the orderings have seen, and the products of every two of them, scaled to unit norm.

    Args:
        start: What the method starts from.
    """

    def __init__(self, start: MethodStart) -> None:
        super().__init__()
        self.seen = SamplesSeen(start)
        self._norms: Tensor = nn.Buffer(torch.empty(start.orderings, 0), persistent=False)
        self._products: Tensor = nn.Buffer(torch.empty(start.orderings, 0, 0), persistent=False)

    @property
    def norms(self) -> Tensor:
        """A view of the norms of all samples seen, `[orderings, count]`."""
        return self._norms[:, : self.seen.count]

    @property
    def products(self) -> Tensor:
        """A view of the products of every two samples of unit norm, `[orderings, count, count]`."""
        return self._products[:, : self.seen.count, : self.seen.count]

    def append(self, features: Tensor, labels: Tensor, indices: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Add a batch, and iterate over the orderings in groups whose features are gathered together.

        The batch is complete only when the iteration has ended.

        Args:
            features: `[orderings, batch, features]`.
            labels: `[orderings, batch]`.
            indices: `[orderings, batch]`, the method's `indices`.

        Yields:
            The orderings of a group, whose products are complete, and the unscaled features of all their samples,
            `[group, count, features]`.
        """
        self.seen.append(features, labels, indices)
        count, first = self.seen.count, self.seen.count - labels.shape[1]
        self._norms = with_room(self._norms, [1], count, self.seen.max_samples)
        self._products = with_room(self._products, [1, 2], count, self.seen.max_samples)
        self._norms[:, first:count] = features.norm(dim=-1).clamp(min=LEAST_NORM)

        for group in self.seen.groups(count):
            samples, norms = self.seen.gather(group), self.norms[group]
            products = features[group] @ samples.mT / norms[:, first:, None] / norms[:, None]
            self._products[group, first:count, :count] = products
            self._products[group, :count, first:count] = products.mT
            yield group, samples

    def gather(self, group: slice) -> Tensor:
        """Gather all samples of some orderings, scaled to unit norm, `[orderings of the group, count, features]`."""
        return functional.normalize(self.seen.gather(group), dim=-1)


def solve_positive(matrix: Tensor, ridge: Tensor | float, right: Tensor) -> Tensor:
    """Solve `(matrix + ridge I) Z = right` in every ordering, the sum being positive definite.

    Args:
        matrix: `[orderings, size, size]`.
        ridge: A number, or `[orderings, 1, 1]`.
        right: `[orderings, size, columns]`.
    """
    lower = torch.linalg.cholesky_ex(matrix + ridge * torch.eye(matrix.shape[-1], device=matrix.device)).L
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    solution: Tensor = torch.linalg.solve_triangular(lower.mT, half, upper=True)
    return solution

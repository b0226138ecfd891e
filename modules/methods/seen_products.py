"""Products of all samples that the orderings have seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from modules.method import Start
from modules.methods.room import with_room
from modules.methods.samples_seen import SamplesSeen


class SeenProducts(nn.Module):
    """The samples that the orderings have seen, scaled to unit norm, and the product of every two of them.

    Args:
        start: What the method starts from.
    """

    _products: Tensor

    def __init__(self, start: Start) -> None:
        super().__init__()
        unit = None if start.samples is None else functional.normalize(start.samples, dim=-1)
        self.seen = SamplesSeen(replace(start, samples=unit))
        self.register_buffer("_products", torch.empty(start.orderings, 0, 0), persistent=False)

    @property
    def count(self) -> int:
        """Number of samples that each ordering has seen."""
        return self.seen.count

    @property
    def labels(self) -> Tensor:
        """A view of the labels of all samples seen, `[orderings, count]`."""
        return self.seen.labels

    @property
    def places(self) -> Tensor:
        """A view of the places of all samples seen among `all_samples`, `[orderings, count]`."""
        return self.seen.places

    def all_samples(self) -> Tensor | None:
        """Give all training samples where orderings share them, `[training samples, features]`."""
        return self.seen.matrix if self.seen.shared else None

    @property
    def products(self) -> Tensor:
        """A view of the products of every two samples, `[orderings, count, count]`."""
        return self._products[:, : self.count, : self.count]

    def append(self, features: Tensor, labels: Tensor, places: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Add a batch, and go through the orderings in groups whose features are gathered at once.

        Nothing is added unless one goes through all of them.

        Args:
            features: `[orderings, batch, features]`.
            labels: `[orderings, batch]`.
            places: `[orderings, batch]`, the method's `places`.

        Yields:
            The orderings of a group, whose products are complete, and all their samples, `[group, count, features]`.
        """
        unit = functional.normalize(features, dim=-1)
        self.seen.append(unit, labels, places)
        self._products = with_room(self._products, [1, 2], self.count, self.seen.max_samples)
        first = self.count - labels.shape[1]
        for group in self.seen.groups(self.count):
            samples = self.gather(group)
            products = unit[group] @ samples.mT
            self._products[group, first : self.count, : self.count] = products
            self._products[group, : self.count, first : self.count] = products.mT
            yield group, samples

    def groups(self, values: int = 0) -> Iterator[slice]:
        """Part the orderings into groups; `values` as for `SamplesSeen.groups`."""
        return self.seen.groups(values)

    def gather(self, group: slice) -> Tensor:
        """Gather all samples of some orderings, `[orderings of the group, count, features]`."""
        return self.seen.gather(group)

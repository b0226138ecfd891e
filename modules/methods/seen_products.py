"""Products of all samples that the orderings have seen."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Start
from headstart.modules.methods.room import with_room
from headstart.modules.methods.samples_seen import SamplesSeen

# Norms under which features count as zero, as in `torch.nn.functional.normalize`.
LEAST_NORM = 1e-12


class SeenProducts(nn.Module):
    """The samples that the orderings have seen, and the products of every two of them, scaled to unit norm.

    Args:
        start: What the method starts from.
    """

    def __init__(self, start: Start) -> None:
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

"""Whether a subset has the largest sum over pairs of all: branch and bound on the densest subgraph of k nodes."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart.metrics.similarity.densest_subset_bound import Floats, Multipliers, bound_densest_subset

Nodes = NDArray[np.intp]

# Steps of the bound between two attempts to decide nodes for good, on the whole and on each of its parts, which begin
# where the whole ended.
STEPS, PART_STEPS = 300, 60
# Parts that are open at a time, each with two matrices: some hundred MB for 141 nodes.
MOST_OPEN = 1000
# Sums that differ by less are taken for equal.
ROUNDING = 1e-9


@dataclass(frozen=True)
class _Part:
    """All subsets with some nodes and without some others.

    Attributes:
        inside: Nodes that all have.
        free: Nodes that are not decided.
        bound: None of the subsets has a larger sum.
        multipliers: Those that the bound was found with, of the free nodes.
        shares: How much of each free node the bound has, between 0 and 1.
    """

    inside: Nodes
    free: Nodes
    bound: float
    multipliers: Multipliers
    shares: Floats


class DensestSubset:
    """A search for the subset with the largest sum over pairs that ends in a proof, or in a bound.

    Args:
        pairs: Symmetric weights with a diagonal of zeros, `[nodes, nodes]`.
        chosen: A good subset to begin with.
        improve: Makes a subset better, or leaves it.

    Attributes:
        chosen: The best subset so far.
        value: The sum of its entries, so that every pair counts twice.
        bound: No subset has a larger sum.
    """

    def __init__(self, pairs: Floats, chosen: Nodes, improve: Callable[[Nodes], Nodes]) -> None:
        self._pairs, self._size, self._improve = pairs, len(chosen), improve
        self._rounding = ROUNDING * max(1.0, float(np.abs(pairs).max()))
        self.chosen, self.value = chosen, self._sum(chosen)
        self.bound = float(np.abs(pairs).sum())

    @property
    def proved(self) -> bool:
        """Whether no subset has a larger sum than the best so far."""
        return self.bound <= self.value + self._rounding

    def search(self, over: Callable[[float], bool]) -> None:
        """Look for better subsets and lower the bound, until they meet.

        The part with the highest bound is split by a node that has to be in or out; a part whose bound says that
        nothing in it is better is done with. A node that the bound could not do with, or without, is decided for good.

        Args:
            over: Is told the operations that were done since it was asked last, and tells whether to end.
        """
        nodes, order = np.arange(len(self._pairs)), count()
        root = _Part(nodes[:0], nodes, self.bound, Multipliers.zero(len(nodes)), np.zeros(len(nodes)))
        open_parts: list[tuple[float, int, _Part]] = []

        def keep(part: _Part, steps: int) -> None:
            left = self._look_into(part, steps, over)
            if left is not None:
                heapq.heappush(open_parts, (-left.bound, next(order), left))

        # Matrices this small are slower by several threads.
        with threadpool_limits(1):
            keep(root, STEPS)
            self._lower(open_parts)
            while not self.proved and not over(0):
                part = self._next(open_parts)
                place = int(np.argmin(np.abs(part.shares - 0.5)))
                others = np.delete(np.arange(len(part.free)), place)
                rest = (part.free[others], part.bound, part.multipliers.of(others), part.shares[others])
                keep(_Part(np.append(part.inside, part.free[place]), *rest), PART_STEPS)
                keep(_Part(part.inside, *rest), PART_STEPS)
                self._lower(open_parts)

    def _next(self, open_parts: list[tuple[float, int, _Part]]) -> _Part:
        """Take out the part with the highest bound, or, where many are open, the one that is nearest to its end."""
        if len(open_parts) <= MOST_OPEN:
            return heapq.heappop(open_parts)[2]
        place = max(range(len(open_parts)), key=lambda each: open_parts[each][:2])
        part = open_parts.pop(place)[2]
        heapq.heapify(open_parts)
        return part

    def _look_into(self, part: _Part, steps: int, over: Callable[[float], bool]) -> _Part | None:
        """Bound a part, and decide what can be decided; None where nothing in it is better than the best so far."""
        while True:
            wanted = self._size - len(part.inside)
            if wanted in (0, len(part.free)):
                self._offer(np.concatenate([part.inside, part.free[:wanted]]))
                return None
            matrix = self._pairs[np.ix_(part.free, part.free)]
            np.fill_diagonal(matrix, 2 * self._pairs[np.ix_(part.free, part.inside)].sum(axis=1))
            held = self._sum(part.inside)
            found = bound_densest_subset(
                matrix,
                wanted,
                self.value + self._rounding - held,
                steps,
                part.multipliers,
                partial(over, float(len(part.free)) ** 3),
            )
            self._offer(self._improve(np.concatenate([part.inside, part.free[found.members]])))
            bound = min(part.bound, held + found.value)
            if bound <= self.value + self._rounding:
                return None
            member = np.zeros(len(part.free), dtype=bool)
            member[found.members] = True
            # What the bound loses if a node joins in place of the least member, or leaves for the best other.
            least, best = found.worths[member].min(), found.worths[~member].max()
            loss = np.where(member, found.worths - best, least - found.worths)
            decided = held + found.value - loss <= self.value + self._rounding
            left = np.flatnonzero(~decided)
            part = _Part(
                np.concatenate([part.inside, part.free[decided & member]]),
                part.free[left],
                bound,
                found.multipliers.of(left),
                found.shares[left],
            )
            if not decided.any() or over(0):
                return part

    def _sum(self, nodes: Nodes) -> float:
        return float(self._pairs[np.ix_(nodes, nodes)].sum())

    def _offer(self, nodes: Nodes) -> None:
        """Keep a subset if it is better than the best so far."""
        value = self._sum(nodes)
        if value > self.value + self._rounding:
            self.chosen, self.value = nodes, value

    def _lower(self, open_parts: list[tuple[float, int, _Part]]) -> None:
        """Take in what the parts that are left say about the bound."""
        reached = self.value + self._rounding
        self.bound = max(reached, -open_parts[0][0]) if open_parts else reached

"""A proof that a subset has the largest sum over pairs: branch and bound on the densest subgraph of k nodes."""

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

# Steps of the bound between two attempts to decide nodes for good: on all subsets, and on each part, which begins with
# the multipliers of the part that it was split from.
STEPS, PART_STEPS = 300, 60
# Open parts, each with two matrices: some hundred MB for 141 nodes.
MOST_OPEN = 1000
# Sums that differ by less count as equal.
ROUNDING = 1e-9


@dataclass(frozen=True)
class _Part:
    """All subsets with some nodes and without some others.

    Attributes:
        inside: Nodes in all of the subsets.
        free: Undecided nodes.
        bound: None of the subsets has a larger sum.
        multipliers: The multipliers of the bound, for the free nodes.
        shares: Share of each free node in the bound, between 0 and 1.
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
        improve: Returns a better subset, or the same.

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

        The part with the highest bound is split by a node that is either in or out; a part whose bound shows that
        nothing in it is better is closed. A node whose exchange would lower the bound too much is decided for good.

        Args:
            over: Whether to end, called with the operations since the last call.
        """
        nodes, order = np.arange(len(self._pairs)), count()
        root = _Part(nodes[:0], nodes, self.bound, Multipliers.zero(len(nodes)), np.zeros(len(nodes)))
        open_parts: list[tuple[float, int, _Part]] = []

        def keep(part: _Part, steps: int) -> None:
            left = self._narrow(part, steps, over)
            if left is not None:
                heapq.heappush(open_parts, (-left.bound, next(order), left))

        # Several threads are slower on matrices this small.
        with threadpool_limits(1):
            keep(root, STEPS)
            self._lower(open_parts)
            while not self.proved and not over(0):
                part = self._next(open_parts)
                split = int(np.argmin(np.abs(part.shares - 0.5)))
                others = np.delete(np.arange(len(part.free)), split)
                rest = (part.free[others], part.bound, part.multipliers.of(others), part.shares[others])
                keep(_Part(np.append(part.inside, part.free[split]), *rest), PART_STEPS)
                keep(_Part(part.inside, *rest), PART_STEPS)
                self._lower(open_parts)

    def _next(self, open_parts: list[tuple[float, int, _Part]]) -> _Part:
        """Pop the part with the highest bound, or, if many are open, the one with the lowest bound."""
        if len(open_parts) <= MOST_OPEN:
            return heapq.heappop(open_parts)[2]
        lowest = max(range(len(open_parts)), key=lambda index: open_parts[index][:2])
        part = open_parts.pop(lowest)[2]
        heapq.heapify(open_parts)
        return part

    def _narrow(self, part: _Part, steps: int, over: Callable[[float], bool]) -> _Part | None:
        """Bound a part and decide nodes; return the rest, None where nothing in it is better than the best so far."""
        while True:
            missing = self._size - len(part.inside)
            if missing in (0, len(part.free)):
                self._offer(np.concatenate([part.inside, part.free[:missing]]))
                return None

            matrix = self._pairs[np.ix_(part.free, part.free)]
            np.fill_diagonal(matrix, 2 * self._pairs[np.ix_(part.free, part.inside)].sum(axis=1))
            inside = self._sum(part.inside)
            reached = self.value + self._rounding - inside
            is_over = partial(over, float(len(part.free)) ** 3)
            relaxed = bound_densest_subset(matrix, missing, reached, steps, part.multipliers, is_over)
            self._offer(self._improve(np.concatenate([part.inside, part.free[relaxed.members]])))
            bound = min(part.bound, inside + relaxed.value)
            if bound <= self.value + self._rounding:
                return None

            member = np.zeros(len(part.free), dtype=bool)
            member[relaxed.members] = True
            # The loss of the bound if a node replaces the least member, or leaves for the best other.
            least, best = relaxed.worths[member].min(), relaxed.worths[~member].max()
            loss = np.where(member, relaxed.worths - best, least - relaxed.worths)
            decided = inside + relaxed.value - loss <= self.value + self._rounding
            left = np.flatnonzero(~decided)
            part = _Part(
                np.concatenate([part.inside, part.free[decided & member]]),
                part.free[left],
                bound,
                relaxed.multipliers.of(left),
                relaxed.shares[left],
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
        """Lower the bound to that of the open parts."""
        reached = self.value + self._rounding
        self.bound = max(reached, -open_parts[0][0]) if open_parts else reached

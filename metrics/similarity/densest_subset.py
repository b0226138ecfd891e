"""The subset with the largest sum over pairs, by branch and bound on the densest subgraph of k nodes."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from headstart.metrics.arrays import Floats, Indices

# Two matrices that can be added without lowering the sum of any subset, `[2, nodes, nodes]`: a positive semidefinite
# one, which adds 0 or more to the sum of every subset, and a skew-symmetric one, which adds nothing to any.
Multipliers = Floats

# Initial share of Polyak's step, steps without a better bound after which it shrinks, the factor, and the smallest.
STEP, PATIENCE, SHRINK, SMALLEST_STEP = 1.0, 10, 0.7, 1e-3
# Weight of earlier directions in the direction of a step.
MOMENTUM = 0.9
# Steps of the bound between two attempts to decide nodes for good: on all subsets, and on each part, which begins with
# the multipliers of the part that it was split from.
STEPS, PART_STEPS = 300, 60
# Open parts, each with two matrices: some hundred MB for 141 nodes.
MOST_OPEN = 1000
# Sums that differ by less count as equal.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Bound:
    """An upper bound on the sums of subsets.

    Attributes:
        value: No subset of the size has a larger sum of its entries.
        members: The nodes that reach the bound; a start for a search.
        worths: The most that each node adds to the bound, `[nodes]`. The value is the sum of the largest, those of the
            members.
        shares: How often each node was a member during the steps, between 0 and 1, `[nodes]`.
        multipliers: The multipliers of the bound.
        steps: Number of steps.
    """

    value: float
    members: Indices
    worths: Floats
    shares: Floats
    multipliers: Multipliers
    steps: int


def bound_densest_subset(
    matrix: Floats,
    size: int,
    reached: float,
    steps: int,
    multipliers: Multipliers | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Bound:
    """Bound the largest sum of the entries of a principal submatrix of a given size.

    Let x be the indicator of a subset. Then x^T A x is at most x^T M x for M = A + S + U, where S is positive
    semidefinite and U skew-symmetric. Each of the best `size` nodes adds to x^T M x at most m_ii and its `size - 1`
    largest m_ij; their sum is the bound. Projected subgradient steps over S and U lower it. Their length is Polyak's,
    towards the value that is `reached`, and every step has a valid bound. With U alone, it is the Lagrangian
    decomposition of A. Caprara, D. Pisinger and P. Toth, "Exact solution of the quadratic knapsack problem", INFORMS
    Journal on Computing, 1999, section 2. With S alone, it is the semidefinite relaxation, as in A. Billionnet, S.
    Elloumi and M.-C. Plateau, "Improving the performance of standard solvers for quadratic 0-1 programs by a tight
    convex reformulation", Discrete Applied Mathematics, 2009. A step is one eigendecomposition.

    Args:
        matrix: Symmetric A, `[nodes, nodes]`; the diagonal counts.
        size: Nodes of a subset, from 1 to all.
        reached: Sum of some subset; steps end once the bound shows that no subset has a larger one.
        steps: Most steps.
        multipliers: Where to begin; by default nothing is changed.
        over: Whether there is no more time, called after each step.

    Returns:
        The lowest bound of all steps.
    """
    current = np.zeros((2, *matrix.shape)) if multipliers is None else multipliers
    relaxed = best = _relax(matrix, size, current)
    lowest, direction, shares = current, relaxed.choice, relaxed.choice.diagonal()
    share, unchanged, taken = STEP, 0, 0
    while taken < steps and best.value > reached and share >= SMALLEST_STEP and not over():
        step = share * (relaxed.value - reached) / float((direction**2).sum())
        positive = _nearest_positive(current[0] - step * (direction + direction.T) / 2)
        current = np.stack([positive, current[1] - step * (direction - direction.T) / 2])
        relaxed = _relax(matrix, size, current)
        direction = MOMENTUM * direction + (1 - MOMENTUM) * relaxed.choice
        shares = MOMENTUM * shares + (1 - MOMENTUM) * relaxed.choice.diagonal()

        unchanged, taken = unchanged + 1, taken + 1
        if relaxed.value < best.value:
            best, lowest, unchanged = relaxed, current, 0
        elif unchanged > PATIENCE:
            # Steps were too long: they shrink, and start from the best again.
            relaxed, current, direction = best, lowest, best.choice
            share, unchanged = share * SHRINK, 0
    return Bound(best.value, best.members, best.worths, shares, lowest, taken)


class _Relaxed(NamedTuple):
    """The best members if each chooses its own partners: `choice[i, j]` is 1 where i chose j."""

    value: float
    members: Indices
    worths: Floats
    choice: Floats


def _relax(matrix: Floats, size: int, multipliers: Multipliers) -> _Relaxed:
    """Choose the best partners of every node, and the best nodes with their partners."""
    changed = matrix + multipliers[0] + multipliers[1]
    own = changed.diagonal().copy()
    # Every node is its own first partner.
    np.fill_diagonal(changed, np.inf)
    partners = np.argpartition(-changed, size - 1, axis=1)[:, :size]
    np.fill_diagonal(changed, own)
    worths = np.take_along_axis(changed, partners, axis=1).sum(axis=1)
    members = np.argpartition(-worths, size - 1)[:size]
    choice = np.zeros_like(changed)
    choice[members[:, None], partners[members]] = 1
    return _Relaxed(float(worths[members].sum()), members, worths, choice)


def _nearest_positive(matrix: Floats) -> Floats:
    """Return the positive semidefinite matrix nearest to a symmetric one."""
    values, vectors = np.linalg.eigh(matrix)
    above = values > 0
    half = vectors[:, above] * np.sqrt(values[above])
    return np.asarray(half @ half.T)


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

    inside: Indices
    free: Indices
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

    def __init__(self, pairs: Floats, chosen: Indices, improve: Callable[[Indices], Indices]) -> None:
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

        The part with the highest bound is split by a node that is either in or out. A part is closed when its bound
        shows that it holds no better subset. A node whose exchange would lower the bound too much is decided for good.

        Args:
            over: Whether to end, called with the operations since the last call.
        """
        nodes, order = np.arange(len(self._pairs)), count()
        root = _Part(nodes[:0], nodes, self.bound, np.zeros((2, len(nodes), len(nodes))), np.zeros(len(nodes)))
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
                multipliers = part.multipliers[:, others][:, :, others]
                rest = (part.free[others], part.bound, multipliers, part.shares[others])
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
            # The bound loses this if a node replaces the least member, or leaves for the best other.
            least, best = relaxed.worths[member].min(), relaxed.worths[~member].max()
            loss = np.where(member, relaxed.worths - best, least - relaxed.worths)
            decided = inside + relaxed.value - loss <= self.value + self._rounding
            left = np.flatnonzero(~decided)
            joined = np.concatenate([part.inside, part.free[decided & member]])
            multipliers = relaxed.multipliers[:, left][:, :, left]
            part = _Part(joined, part.free[left], bound, multipliers, relaxed.shares[left])
            if not decided.any() or over(0):
                return part

    def _sum(self, nodes: Indices) -> float:
        return float(self._pairs[np.ix_(nodes, nodes)].sum())

    def _offer(self, nodes: Indices) -> None:
        """Keep a subset if it is better than the best so far."""
        value = self._sum(nodes)
        if value > self.value + self._rounding:
            self.chosen, self.value = nodes, value

    def _lower(self, open_parts: list[tuple[float, int, _Part]]) -> None:
        """Lower the bound to that of the open parts."""
        reached = self.value + self._rounding
        self.bound = max(reached, -open_parts[0][0]) if open_parts else reached

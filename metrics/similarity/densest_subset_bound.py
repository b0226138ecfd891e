"""How high the sum over all pairs of a subset can be at most: a bound on the densest subgraph of k nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Share of the step of Polyak to begin with, steps without a better bound after which it shrinks, by what factor, and
# where it is too small to matter.
STEP, PATIENCE, SHRINK, SMALLEST_STEP = 1.0, 10, 0.7, 1e-3
# Weight of the directions before in the direction of a step.
MOMENTUM = 0.9


@dataclass(frozen=True)
class Multipliers:
    """What a matrix is changed by without a subset's sum getting less.

    Attributes:
        positive: Positive semidefinite, `[nodes, nodes]`: it adds 0 or more to the sum of every subset.
        skew: Skew-symmetric, `[nodes, nodes]`: it adds nothing to the sum of any.
    """

    positive: Floats
    skew: Floats

    @classmethod
    def zero(cls, nodes: int) -> Multipliers:
        """Give those that change nothing."""
        return cls(np.zeros((nodes, nodes)), np.zeros((nodes, nodes)))

    def of(self, nodes: NDArray[np.intp]) -> Multipliers:
        """Give those of some of the nodes, which are of the same kind."""
        return Multipliers(self.positive[np.ix_(nodes, nodes)], self.skew[np.ix_(nodes, nodes)])


@dataclass(frozen=True)
class Bound:
    """An upper bound on the sums of subsets.

    Attributes:
        value: No subset of the size has a larger sum of its entries.
        members: The nodes that the bound is reached with; a start for a search.
        worths: What each node adds to the bound at most, `[nodes]`: the value is the sum over members, who have the
            largest.
        shares: How often each node was a member on the way, between 0 and 1, `[nodes]`.
        multipliers: Those that the bound was found with.
        steps: How many steps it took.
    """

    value: float
    members: NDArray[np.intp]
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

    With x the indicator of a subset, x^T A x is at most x^T M x for M = A + S + U, S positive semidefinite and U
    skew-symmetric. And x^T M x is at most the sum over the best `size` nodes of what each has with its own best
    partners: m_ii and its `size - 1` largest m_ij. The bound is this, made as low as it gets over S and U by projected
    subgradient steps of Polyak's length towards the value that is `reached`, so that every step gives a valid bound.
    U alone is the Lagrangian decomposition of A. Caprara, D. Pisinger and P. Toth, "Exact solution of the quadratic
    knapsack problem", INFORMS Journal on Computing, 1999, section 2; S alone the semidefinite relaxation, as in A.
    Billionnet, S. Elloumi and M.-C. Plateau, "Improving the performance of standard solvers for quadratic 0-1 programs
    by a tight convex reformulation", Discrete Applied Mathematics, 2009. A step is one eigendecomposition.

    Args:
        matrix: Symmetric A, `[nodes, nodes]`; the diagonal counts.
        size: Nodes of a subset, from 1 to all.
        reached: Sum that some subset has; steps end once the bound shows that none has more.
        steps: Most steps.
        multipliers: Where to begin; by default nothing is changed.
        over: Tells after each step whether there is no more time.

    Returns:
        The lowest bound that was met.
    """
    now = Multipliers.zero(len(matrix)) if multipliers is None else multipliers
    found = best = _relax(matrix, size, now)
    lowest, direction, shares = now, found.choice, found.choice.diagonal()
    share, unchanged, taken = STEP, 0, 0
    while taken < steps and best.value > reached and share >= SMALLEST_STEP and not over():
        step = share * (found.value - reached) / float((direction**2).sum())
        now = Multipliers(
            _nearest_positive(now.positive - step * (direction + direction.T) / 2),
            now.skew - step * (direction - direction.T) / 2,
        )
        found = _relax(matrix, size, now)
        direction = MOMENTUM * direction + (1 - MOMENTUM) * found.choice
        shares = MOMENTUM * shares + (1 - MOMENTUM) * found.choice.diagonal()
        unchanged, taken = unchanged + 1, taken + 1
        if found.value < best.value:
            best, lowest, unchanged = found, now, 0
        elif unchanged > PATIENCE:
            found, now, direction = best, lowest, best.choice
            share, unchanged = share * SHRINK, 0
    return Bound(best.value, best.members, best.worths, shares, lowest, taken)


class _Relaxed(NamedTuple):
    """The best choice where every member chooses its own partners: `choice[i, j]` is 1 where i chose j."""

    value: float
    members: NDArray[np.intp]
    worths: Floats
    choice: Floats


def _relax(matrix: Floats, size: int, multipliers: Multipliers) -> _Relaxed:
    """Let every node choose its best partners, and take the best nodes with theirs."""
    changed = matrix + multipliers.positive + multipliers.skew
    own = changed.diagonal().copy()
    # Everyone is its own first partner.
    np.fill_diagonal(changed, np.inf)
    partners = np.argpartition(-changed, size - 1, axis=1)[:, :size]
    np.fill_diagonal(changed, own)
    worths = np.take_along_axis(changed, partners, axis=1).sum(axis=1)
    members = np.argpartition(-worths, size - 1)[:size]
    choice = np.zeros_like(changed)
    choice[members[:, None], partners[members]] = 1
    return _Relaxed(float(worths[members].sum()), members, worths, choice)


def _nearest_positive(matrix: Floats) -> Floats:
    """Give the positive semidefinite matrix nearest to a symmetric one."""
    values, vectors = np.linalg.eigh(matrix)
    above = values > 0
    half = vectors[:, above] * np.sqrt(values[above])
    return np.asarray(half @ half.T)

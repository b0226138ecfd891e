"""An upper bound on the sum over all pairs of a subset: a bound on the densest subgraph of k nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Initial share of Polyak's step, steps without a better bound after which it shrinks, the factor, and the smallest.
STEP, PATIENCE, SHRINK, SMALLEST_STEP = 1.0, 10, 0.7, 1e-3
# Weight of earlier directions in the direction of a step.
MOMENTUM = 0.9


@dataclass(frozen=True)
class Multipliers:
    """Matrices that can be added without lowering the sum of any subset.

    Attributes:
        positive: Positive semidefinite, `[nodes, nodes]`: it adds 0 or more to the sum of every subset.
        skew: Skew-symmetric, `[nodes, nodes]`: it adds nothing to the sum of any.
    """

    positive: Floats
    skew: Floats

    @classmethod
    def zero(cls, nodes: int) -> Multipliers:
        """Return multipliers that change nothing."""
        return cls(np.zeros((nodes, nodes)), np.zeros((nodes, nodes)))

    def of(self, nodes: NDArray[np.intp]) -> Multipliers:
        """Return the multipliers of some of the nodes."""
        return Multipliers(self.positive[np.ix_(nodes, nodes)], self.skew[np.ix_(nodes, nodes)])


@dataclass(frozen=True)
class Bound:
    """An upper bound on the sums of subsets.

    Attributes:
        value: No subset of the size has a larger sum of its entries.
        members: The nodes that reach the bound; a start for a search.
        worths: What each node adds to the bound at most, `[nodes]`; the value is the sum of the largest, those of the
            members.
        shares: How often each node was a member during the steps, between 0 and 1, `[nodes]`.
        multipliers: The multipliers of the bound.
        steps: Number of steps.
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
        reached: Sum of some subset; steps end once the bound shows that no subset has a larger one.
        steps: Most steps.
        multipliers: Where to begin; by default nothing is changed.
        over: Whether there is no more time, called after each step.

    Returns:
        The lowest bound of all steps.
    """
    current = Multipliers.zero(len(matrix)) if multipliers is None else multipliers
    relaxed = best = _relax(matrix, size, current)
    lowest, direction, shares = current, relaxed.choice, relaxed.choice.diagonal()
    share, unchanged, taken = STEP, 0, 0
    while taken < steps and best.value > reached and share >= SMALLEST_STEP and not over():
        step = share * (relaxed.value - reached) / float((direction**2).sum())
        current = Multipliers(
            _nearest_positive(current.positive - step * (direction + direction.T) / 2),
            current.skew - step * (direction - direction.T) / 2,
        )
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
    members: NDArray[np.intp]
    worths: Floats
    choice: Floats


def _relax(matrix: Floats, size: int, multipliers: Multipliers) -> _Relaxed:
    """Choose the best partners of every node, and the best nodes with their partners."""
    changed = matrix + multipliers.positive + multipliers.skew
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

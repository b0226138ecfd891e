"""Hierarchical clustering of models by their similarities, with the leaves of the tree in their best order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]


def cluster(matrix: Floats) -> Floats:
    """Cluster models by average linkage on the distance 1 - CKA, clipped at 0.

    Args:
        matrix: Similarities `[m, m]`, symmetric; m is at least 2.

    Returns:
        The merges `[m - 1, 4]`, as scipy gives them. Which side of a merge comes first is chosen so that the sum of
        distances between neighbouring leaves is the smallest that the tree allows.
    """
    distances = np.clip(1 - (matrix + matrix.T) / 2, 0, None)
    np.fill_diagonal(distances, 0)
    merges: Floats = linkage(squareform(distances, checks=False), "average")
    merges[:, :2] = _LeafOrder(merges[:, :2].astype(np.intp), distances).order_sides()
    return merges


def cluster_order(matrix: Floats) -> list[int]:
    """Order models by `cluster`, so that neighbours are alike.

    Args:
        matrix: Similarities `[m, m]`, symmetric; m is at least 2.

    Returns:
        The indices of the models in order.
    """
    return [int(index) for index in leaves_list(cluster(matrix))]


class _LeafOrder:
    """The optimal order of a tree's leaves (Bar-Joseph, Gifford, Jaakkola, Bioinformatics 17, 2001), in O(m^3).

    Scipy's own misses the optimum in many trees of four leaves and more, and is slower with hundreds.

    `costs[u, w]` is the smallest sum of distances between neighbours, over all orders of the leaves below the merge at
    which u and w meet that begin with u and end with w. Below any other merge, u and w cannot both be at an end.

    Args:
        children: The two sides of each merge, `[m - 1, 2]`; m and more are earlier merges.
        distances: Distances of the leaves, `[m, m]`.
    """

    def __init__(self, children: Indices, distances: Floats) -> None:
        self.children, self.distances = children, distances
        self.count = len(distances)
        self.costs = np.zeros_like(distances)
        self.leaves = [np.array([leaf]) for leaf in range(self.count)]

    def order_sides(self) -> Indices:
        """Give the sides of each merge in order, `[m - 1, 2]`."""
        for left, right in self.children:
            self._join(left, right)
            self.leaves.append(np.concatenate([self.leaves[left], self.leaves[right]]))
        ordered = self.children.copy()
        left, right = (self.leaves[side] for side in self.children[-1])
        best = np.argmin(self.costs[np.ix_(left, right)])
        pending = [(2 * self.count - 2, left[best // len(right)], right[best % len(right)])]
        while pending:
            node, first, last = pending.pop()
            if node < self.count:
                continue
            near, far = self.children[node - self.count]
            if first not in self.leaves[near]:
                near, far = far, near
            ordered[node - self.count] = near, far
            before, after = self._opposite(near, first), self._opposite(far, last)
            sums = self.costs[first, before, None] + self.distances[np.ix_(before, after)] + self.costs[after, last]
            best = np.argmin(sums)
            pending += [(near, first, before[best // len(after)]), (far, after[best % len(after)], last)]
        return ordered

    def _join(self, left: int, right: int) -> None:
        """Fill in the costs of the leaves that meet at a merge, from those below it."""
        first = self.leaves[left]
        reached = np.empty_like(self.distances)
        for outer, inner in self._ends(left):
            steps = self.distances[np.ix_(inner, self.leaves[right])]
            reached[np.ix_(outer, self.leaves[right])] = _min_plus(self.costs[np.ix_(outer, inner)], steps)
        for outer, inner in self._ends(right):
            costs = _min_plus(reached[np.ix_(first, inner)], self.costs[np.ix_(inner, outer)])
            self.costs[np.ix_(first, outer)] = costs
            self.costs[np.ix_(outer, first)] = costs.T

    def _ends(self, node: int) -> list[tuple[Indices, Indices]]:
        """List where the two ends of a node's order can be: on one side each."""
        if node < self.count:
            return [(self.leaves[node], self.leaves[node])]
        left, right = (self.leaves[side] for side in self.children[node - self.count])
        return [(left, right), (right, left)]

    def _opposite(self, node: int, end: int) -> Indices:
        """Give the leaves that can be at the other end of a node's order."""
        return next(inner for outer, inner in self._ends(node) if end in outer)


def _min_plus(first: Floats, second: Floats) -> Floats:
    """Give `min over k of first[i, k] + second[k, j]`."""
    smallest = first[:, :1] + second[:1]
    for k in range(1, len(second)):
        np.minimum(smallest, first[:, k, None] + second[k], out=smallest)
    return smallest

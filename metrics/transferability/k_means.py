"""Clustering by k-means."""

from __future__ import annotations

import math

import numpy as np

from metrics.arrays import Array, like, namespace

ITERATIONS = 100


def k_means(rows: Array, clusters: int, seed: int) -> Array:
    """Cluster rows `[samples, features]` by Lloyd's algorithm until no row changes its cluster, at most 100 times.

    Args:
        rows: The rows.
        clusters: How many, at most as many as samples; some may end without rows where rows are alike.
        seed: Of the starting points.

    Returns:
        The cluster of each row, `[samples]`.
    """
    xp = namespace(rows)
    centres = _spread_out(rows, clusters, np.random.default_rng(seed))
    labels = _nearest(rows, centres)
    for _ in range(ITERATIONS):
        members = (labels[:, None] == xp.arange(clusters, device=rows.device)) * xp.ones_like(rows[:, :1])
        sizes = members.sum(0)[:, None]
        centres = xp.where(sizes > 0, members.T @ rows / xp.clip(sizes, 1, None), centres)
        moved = _nearest(rows, centres)
        if bool((moved == labels).all()):
            break
        labels = moved
    return labels


def _nearest(rows: Array, centres: Array) -> Array:
    return ((centres**2).sum(1) - 2 * (rows @ centres.T)).argmin(1)


def _spread_out(rows: Array, clusters: int, generator: np.random.Generator) -> Array:
    """Choose starting points far from one another, each as the best of a few that are drawn.

    Source: David Arthur, Sergei Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007, in the greedy
    form that its section 6 mentions.
    """
    xp = namespace(rows)
    norms = (rows**2).sum(1)
    trials = 2 + int(math.log(clusters))
    first = int(generator.integers(len(rows)))
    chosen, nearest = [first], xp.clip(norms + norms[first] - 2 * (rows @ rows[first]), 0, None)
    while len(chosen) < clusters:
        steps = xp.cumsum(nearest, 0)
        draws = like(generator.random(trials), rows) * steps[-1]
        places = xp.clip(xp.searchsorted(steps, draws), 0, len(rows) - 1)
        distances = norms[:, None] + norms[places] - 2 * (rows @ rows[places].T)
        distances = xp.minimum(xp.clip(distances, 0, None), nearest[:, None])
        best = int(distances.sum(0).argmin())
        chosen.append(int(places[best]))
        nearest = distances[:, best]
    return rows[like(np.array(chosen), rows)]

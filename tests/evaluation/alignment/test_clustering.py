"""The order of models, against every order that the tree allows."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cophenet, is_valid_linkage, linkage
from scipy.spatial.distance import squareform

from evaluation.alignment.clustering import cluster, cluster_order

Matrix = NDArray[np.float64]


def draw_similarities(models: int, seed: int, lowest: float) -> Matrix:
    points = np.random.default_rng(seed).normal(size=(models, 3))
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    similarities: Matrix = lowest + (1 - lowest) * np.exp(-squared / 4)
    return similarities


def plant_blocks(sizes: list[int], seed: int = 0) -> tuple[Matrix, NDArray[np.int64]]:
    """Give similarities near 0.9 within and 0.3 between blocks, in random order, and the block of each model."""
    generator = np.random.default_rng(seed)
    block = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    noise = generator.uniform(-0.05, 0.05, (len(block), len(block)))
    matrix = np.where(block[:, None] == block, 0.9, 0.3) + (noise + noise.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix, block


def flip_everywhere(merges: Matrix) -> list[list[int]]:
    """List every order of the leaves that the tree allows: each merge's two sides, either way round."""
    models = len(merges) + 1
    orders: list[list[list[int]]] = [[[leaf]] for leaf in range(models)]
    for left, right in merges[:, :2].astype(int):
        pairs = list(product(orders[left], orders[right]))
        orders.append([a + b for a, b in pairs] + [b + a for a, b in pairs])
    return orders[-1]


@pytest.mark.parametrize("lowest", [0.0, -0.4])
@pytest.mark.parametrize("models", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_neighbours_are_as_alike_as_the_tree_allows(models: int, seed: int, lowest: float) -> None:
    matrix = draw_similarities(models, seed, lowest)
    distances = 1 - matrix
    allowed = flip_everywhere(linkage(squareform(distances, checks=False), "average"))
    assert len(allowed) == 2 ** (models - 1)
    sums = [sum(distances[a, b] for a, b in pairwise(order)) for order in allowed]
    order = cluster_order(matrix)
    assert order in allowed
    assert sums[allowed.index(order)] == pytest.approx(min(sums))


@pytest.mark.parametrize("sizes", [[4, 7, 2, 12], [20, 25, 15], [2, 2]])
def test_planted_blocks_stand_together(sizes: list[int]) -> None:
    matrix, block = plant_blocks(sizes)
    order = cluster_order(matrix)
    assert sorted(order) == list(range(len(block)))
    assert np.count_nonzero(np.diff(block[order])) == len(sizes) - 1


@pytest.mark.parametrize("models", [2, 9, 40])
def test_tree_is_that_of_scipy(models: int) -> None:
    matrix = draw_similarities(models, seed=3, lowest=0.2)
    merges = cluster(matrix)
    assert is_valid_linkage(merges)
    expected = linkage(squareform(1 - matrix, checks=False), "average")
    np.testing.assert_allclose(cophenet(merges), cophenet(expected))
    np.testing.assert_array_equal(merges[:, 2:], expected[:, 2:])


def test_chain_of_models_keeps_its_order() -> None:
    place = np.random.default_rng(0).permutation(30)
    matrix = 1 - np.abs(place[:, None] - place) / 30
    order = place[cluster_order(matrix)]
    assert set(np.abs(np.diff(order))) == {1}


def test_rounding_is_no_distance() -> None:
    matrix = np.ones((3, 3))
    matrix[0, 1] = 1 + 1e-15
    matrix[2] = matrix[:, 2] = 1 - 1e-16
    assert sorted(cluster_order(matrix)) == [0, 1, 2]

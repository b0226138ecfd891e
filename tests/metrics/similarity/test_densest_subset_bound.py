"""The bound on the densest subset, against every subset."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity.densest_subset import bound_densest_subset
from headstart.tests.metrics.similarity.test_densest_subset_proof import densest


def weights(nodes: int, seed: int) -> NDArray[np.float64]:
    """Return a symmetric matrix of entries of both signs, with a diagonal."""
    values = np.random.default_rng(seed).normal(size=(nodes, nodes))
    return (values + values.T) / 2


@pytest.mark.parametrize("size", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("steps", [0, 1, 20, 200])
def test_no_subset_has_more(size: int, steps: int) -> None:
    matrix = weights(9, seed=size)
    optimum = densest(matrix, size)
    bound = bound_densest_subset(matrix, size, optimum, steps)
    assert bound.value >= optimum - 1e-9
    assert bound.steps <= steps
    assert bound.value == pytest.approx(np.sort(bound.worths)[-size:].sum())
    assert bound.worths[bound.members].sum() == pytest.approx(bound.value)


@pytest.mark.parametrize("seed", range(5))
def test_any_multipliers_of_their_kind_give_a_bound(seed: int) -> None:
    generator = np.random.default_rng(seed)
    factor, skew = generator.normal(size=(8, 3)), generator.normal(size=(8, 8))
    multipliers = np.stack([factor @ factor.T, (skew - skew.T) / 2])
    bound = bound_densest_subset(weights(8, seed), 3, -np.inf, 0, multipliers)
    assert bound.value >= densest(weights(8, seed), 3)


def test_steps_tighten_the_bound() -> None:
    matrix = weights(30, seed=0)
    np.fill_diagonal(matrix, 0)
    reached = 0.6 * float(bound_densest_subset(matrix, 6, 0, 0).value)
    values = [bound_densest_subset(matrix, 6, reached, steps).value for steps in (0, 10, 100)]
    assert values[0] > values[1] > values[2]


def test_multipliers_stay_of_their_kind() -> None:
    multipliers = bound_densest_subset(weights(12, seed=1), 4, 0, 50).multipliers
    assert np.linalg.eigvalsh(multipliers[0]).min() >= -1e-9
    assert np.abs(multipliers[0]).max() > 0
    np.testing.assert_allclose(multipliers[1], -multipliers[1].T, atol=1e-12)


def test_a_clique_that_nothing_else_touches_needs_no_steps() -> None:
    matrix = np.zeros((10, 10))
    matrix[:4, :4] = 1 - np.eye(4)
    bound = bound_densest_subset(matrix, 4, 12, 100)
    assert (bound.value, bound.steps, sorted(bound.members)) == (12, 0, [0, 1, 2, 3])


def test_it_ends_when_there_is_no_more_time() -> None:
    deadline = iter([False, False, True])
    assert bound_densest_subset(weights(12, seed=1), 4, 0, 50, over=lambda: next(deadline)).steps == 2

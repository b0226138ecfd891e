"""Branch and bound for the densest subset, against every subset."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity import densest_subset
from headstart.metrics.similarity.densest_subset import DensestSubset


def weights(nodes: int, seed: int, levels: int = 0) -> NDArray[np.float64]:
    """Return a symmetric matrix with a diagonal of zeros, of entries of both signs, or of few levels with many ties."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, levels, (nodes, nodes)) if levels else generator.normal(size=(nodes, nodes))
    upper = np.triu(values, 1).astype(float)
    return np.asarray(upper + upper.T)


def densest(matrix: NDArray[np.float64], size: int) -> float:
    """Return the largest sum of all subsets."""
    return max(float(matrix[np.ix_(each, each)].sum()) for each in combinations(range(len(matrix)), size))


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("size", [2, 3, 5, 9])
def test_from_a_poor_start_the_optimum_is_found_and_proved(size: int, levels: int) -> None:
    matrix = weights(10, seed=size, levels=levels)
    search = DensestSubset(matrix, np.arange(size), improve=lambda nodes: nodes)
    search.search(lambda operations: False)
    assert search.proved
    assert search.value == pytest.approx(densest(matrix, size), abs=1e-8)
    assert search.value == pytest.approx(matrix[np.ix_(search.chosen, search.chosen)].sum())
    assert len(set(search.chosen.tolist())) == size


def test_wherever_it_is_ended_the_bound_holds_and_only_falls() -> None:
    matrix = weights(14, seed=3)
    optimum = densest(matrix, 6)
    bounds = []
    for most in range(0, 400, 40):
        search = DensestSubset(matrix, np.arange(6), improve=lambda nodes: nodes)
        calls = iter(range(10_000))
        search.search(lambda operations, most=most, calls=calls: next(calls) >= most)  # type: ignore[misc]
        assert search.value <= optimum + 1e-9
        assert search.bound >= optimum - 1e-9
        bounds.append(search.bound)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]


def test_few_open_parts_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = weights(14, seed=3)
    values = []
    for most in (1000, 1):
        monkeypatch.setattr(densest_subset, "MOST_OPEN", most)
        search = DensestSubset(matrix, np.arange(6), improve=lambda nodes: nodes)
        search.search(lambda operations: False)
        assert search.proved
        values.append(search.value)
    assert values == pytest.approx([densest(matrix, 6)] * 2)


def test_operations_are_reported() -> None:
    reports: list[float] = []
    search = DensestSubset(weights(12, seed=0), np.arange(4), improve=lambda nodes: nodes)

    def over(operations: float) -> bool:
        reports.append(operations)
        return False

    search.search(over)
    assert search.proved
    assert max(reports) == 12**3

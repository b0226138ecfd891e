"""The search for models that agree, against every subset."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity import model_subset_search
from headstart.metrics.similarity.densest_subset import DensestSubset
from headstart.metrics.similarity.model_subset_search import best_model_subset, random_model_subsets


def similarities(models: int, seed: int) -> NDArray[np.float64]:
    """Return a symmetric matrix with a unit diagonal and all other entries between 0 and 1."""
    values = np.random.default_rng(seed).random((models, models))
    matrix = (values + values.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def mean_pair(matrix: NDArray[np.float64], subset: tuple[int, ...]) -> float:
    """Average over the pairs of a subset, one by one."""
    return float(np.mean([matrix[first, second] for first, second in combinations(subset, 2)]))


def brute_force(matrix: NDArray[np.float64], size: int) -> tuple[tuple[int, ...], float]:
    """Find the best of all subsets."""
    best = max(combinations(range(len(matrix)), size), key=lambda subset: mean_pair(matrix, subset))
    return best, mean_pair(matrix, best)


@pytest.mark.parametrize(
    ("models", "size"), [(models, size) for models in range(2, 9) for size in range(2, models + 1)]
)
def test_small_registries_are_searched_exactly(models: int, size: int) -> None:
    matrix = similarities(models, seed=10 * models + size)
    best = best_model_subset(matrix, size)
    chosen, value = brute_force(matrix, size)
    assert best.exact
    assert best.chosen == chosen
    assert best.value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("size", [2, 3, 10, 11])
def test_chunks_join(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_subset_search, "CHUNK", 7)
    matrix = similarities(13, seed=size)
    assert best_model_subset(matrix, size).chosen == brute_force(matrix, size)[0]


@pytest.mark.parametrize("size", [2, 4, 7, 12])
@pytest.mark.parametrize("seed", range(3))
def test_branch_and_bound_proves_the_optimum(size: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_subset_search, "EXACT_LIMIT", 0)
    matrix = similarities(13, seed)
    best = best_model_subset(matrix, size)
    assert best.exact
    assert best.value == best.bound == pytest.approx(brute_force(matrix, size)[1], abs=1e-12)


@pytest.mark.parametrize("size", [2, 4, 7, 12])
@pytest.mark.parametrize("effort", [0, 1e4, 1e5])
def test_the_bound_is_never_below_the_optimum(size: int, effort: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_subset_search, "EXACT_LIMIT", 0)
    monkeypatch.setattr(model_subset_search, "EFFORT", effort)
    matrix = similarities(13, seed=9) - 0.5
    best = best_model_subset(matrix, size)
    assert best.bound is not None
    assert best.value <= brute_force(matrix, size)[1] + 1e-12 <= best.bound + 2e-12
    assert best.exact == (best.bound == best.value)


def test_more_effort_lowers_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = similarities(60, seed=0)
    bounds = []
    for effort in (0, 3e6, 3e7, 1e8):
        monkeypatch.setattr(model_subset_search, "EFFORT", effort)
        best = best_model_subset(matrix, 10)
        assert not best.exact
        bounds.append(best.bound or 0)
    assert bounds == sorted(bounds, reverse=True)
    # The bound before the first step is the sum of the best models with their own best partners.
    largest = np.sort(matrix - np.eye(60), axis=1)[:, -9:].mean(axis=1)
    assert bounds[0] == pytest.approx(np.sort(largest)[-10:].mean(), abs=1e-9)
    assert bounds[-1] < bounds[0] - 0.1


def test_time_ends_the_proof_and_progress_tells_how_far_it_is() -> None:
    matrix = similarities(90, seed=0)
    reports: list[tuple[int, int, str]] = []
    best = best_model_subset(matrix, 12, 0.3, lambda *state: reports.append(state))
    assert not best.exact
    assert best.bound is not None
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)
    assert reports[-1][0] == reports[-1][1]
    assert reports[-1][2].startswith(f"best {best.value:.4f}, at most ")


@pytest.mark.parametrize("size", [2, 10, 60])
def test_no_exchange_improves_a_large_search(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_subset_search, "EXACT_LIMIT", 0)
    monkeypatch.setattr(model_subset_search, "EFFORT", 0)
    matrix = similarities(70, seed=size)
    best = best_model_subset(matrix, size)
    assert len(set(best.chosen)) == size
    assert best.value == pytest.approx(mean_pair(matrix, best.chosen), abs=1e-12)
    others = set(range(70)) - set(best.chosen)
    for leaver, joiner in product(best.chosen, others):
        neighbour = (*(set(best.chosen) - {leaver}), joiner)
        inside = matrix[np.ix_(neighbour, neighbour)]
        assert (inside.sum() - np.trace(inside)) / (size * (size - 1)) <= best.value + 1e-10


def test_the_limit_decides_what_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert math.comb(22, 11) < model_subset_search.EXACT_LIMIT < math.comb(23, 11)
    monkeypatch.setattr(model_subset_search, "EFFORT", 0)
    assert not best_model_subset(similarities(23, seed=0), 11).exact


def test_a_planted_family_is_found() -> None:
    matrix = similarities(100, seed=0) / 2
    family = tuple(range(3, 100, 10))
    matrix[np.ix_(family, family)] += 0.3
    best = best_model_subset(matrix, len(family))
    assert best.chosen == family
    assert best.exact


def test_a_family_that_growth_misses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every growth from the family goes astray to a decoy, and ends below the trap, which no exchange leaves.
    monkeypatch.setattr(model_subset_search, "EXACT_LIMIT", 0)
    family, trap, decoys = np.arange(5), np.arange(5, 10), np.arange(10, 15)
    matrix = np.zeros((15, 15))
    matrix[np.ix_(family, family)] = 0.9
    matrix[np.ix_(trap, trap)] = 0.8
    matrix[family, decoys] = matrix[decoys, family] = 1
    best = best_model_subset(matrix, 5)
    assert best.chosen == tuple(family)
    assert best.value == pytest.approx(0.9)
    # One start ends in the trap, and the bound shows the way out.
    monkeypatch.setattr(model_subset_search, "STARTS", 1)
    assert best_model_subset(matrix, 5).chosen == tuple(family)
    monkeypatch.setattr(DensestSubset, "search", lambda search, over: None)
    assert best_model_subset(matrix, 5).chosen == tuple(trap)


def test_neither_diagonal_nor_argument_matters() -> None:
    matrix = similarities(8, seed=1)
    other = matrix + np.diag(np.arange(8.0))
    before = other.copy()
    assert best_model_subset(matrix, 3) == best_model_subset(other, 3)
    np.testing.assert_array_equal(other, before)


def test_random_subsets_have_the_values_of_subsets() -> None:
    matrix = similarities(7, seed=3)
    values = random_model_subsets(matrix, 3, count=500, seed=1)
    every = np.array([mean_pair(matrix, subset) for subset in combinations(range(7), 3)])
    assert values.shape == (500,)
    indices = np.abs(values[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(values, every[indices], atol=1e-12)
    # All 35 subsets are as likely: each comes up, and about 500 / 35 times.
    counts = np.bincount(indices, minlength=len(every))
    assert counts.min() > 0
    assert counts.max() < 40


def test_random_subsets_are_seeded_and_below_the_best() -> None:
    matrix = similarities(12, seed=4)
    values = random_model_subsets(matrix, 5, seed=1)
    np.testing.assert_array_equal(values, random_model_subsets(matrix, 5, seed=1))
    assert (values != random_model_subsets(matrix, 5, seed=2)).any()
    assert len(values) == 100
    assert values.max() <= best_model_subset(matrix, 5).value


@pytest.mark.parametrize("size", [-1, 0, 1, 6])
def test_sizes_that_no_submission_has(size: int) -> None:
    for search in (best_model_subset, random_model_subsets):
        with pytest.raises(ValueError, match=rf"size: {size} of 5 models .* at least 2 and at most 5"):
            search(similarities(5, seed=0), size)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("models", [5, 40])
def test_similarities_that_are_no_numbers(models: int, value: float) -> None:
    matrix = np.eye(models)
    matrix[3, 1] = matrix[1, 3] = value
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        best_model_subset(matrix, 4 if models == 5 else 20, seconds=0.1)

"""The search for models that agree, against every subset."""

from itertools import combinations, islice, product

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity.subset_search import Found, PairScores, random_scores, search_subsets


def similarities(models: int, seed: int) -> NDArray[np.float64]:
    """Return a symmetric matrix with a unit diagonal and all other entries between 0 and 1."""
    values = np.random.default_rng(seed).random((models, models))
    matrix = (values + values.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def mean_pair(matrix: NDArray[np.float64], subset: tuple[int, ...]) -> float:
    """Average over the pairs of a subset, one by one."""
    return float(np.mean([matrix[first, second] for first, second in combinations(subset, 2)]))


def find(matrix: NDArray[np.float64], size: int, steps: int = 300, seed: int = 0) -> Found:
    (*_, found) = islice(search_subsets(PairScores(matrix), size, seed), steps)
    return found


@pytest.mark.parametrize(("models", "size"), [(2, 2), (5, 3), (8, 2), (8, 5), (8, 8), (13, 6), (13, 12)])
def test_small_registries(models: int, size: int) -> None:
    matrix = similarities(models, seed=10 * models + size)
    best = max(combinations(range(models), size), key=lambda subset: mean_pair(matrix, subset))
    found = find(matrix, size)
    assert found.members == best
    assert found.score == pytest.approx(mean_pair(matrix, best), abs=1e-12)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_scores_with_and_without_each(size: int) -> None:
    matrix = similarities(9, seed=size) - 0.5
    scores, members = PairScores(matrix), np.arange(size)
    scores.offer(np.arange(9))
    joined = [mean_pair(matrix, (*range(size), each)) for each in range(size, 9)]
    np.testing.assert_allclose(scores.joining(members, np.arange(size, 9)), joined, atol=1e-12)
    if size > 2:
        left = [mean_pair(matrix, tuple(set(range(size)) - {each})) for each in range(size)]
        np.testing.assert_allclose(scores.leaving(members), left, atol=1e-12)


def test_no_exchange_improves_a_large_search() -> None:
    matrix = similarities(70, seed=1)
    found = find(matrix, 6, steps=60)
    for leaver, joiner in product(found.members, set(range(70)) - set(found.members)):
        neighbour = (*(set(found.members) - {leaver}), joiner)
        assert mean_pair(matrix, neighbour) <= found.score + 1e-9


def test_a_planted_family_is_found() -> None:
    matrix = similarities(100, seed=0) / 2
    family = tuple(range(3, 100, 10))
    matrix[np.ix_(family, family)] += 0.3
    assert find(matrix, len(family)).members == family


def test_a_family_that_growth_misses_is_found() -> None:
    # Every growth from the family goes astray to a decoy; the trap is a subset that no exchange leaves.
    family, trap, decoys = np.arange(5), np.arange(5, 10), np.arange(10, 15)
    matrix = np.zeros((15, 15))
    matrix[np.ix_(family, family)] = 0.9
    matrix[np.ix_(trap, trap)] = 0.8
    matrix[family, decoys] = matrix[decoys, family] = 1
    assert find(matrix, 5).members == tuple(family)


def test_results_depend_on_the_seed_alone_and_more_steps_are_never_worse() -> None:
    matrix = similarities(60, seed=3)
    runs = [list(islice(search_subsets(PairScores(matrix), 10, seed), 200)) for seed in (4, 4)]
    assert runs[0] == runs[1]
    scores = [found.score for found in runs[0]]
    assert scores == sorted(scores)


def test_neither_diagonal_nor_argument_matters() -> None:
    matrix = similarities(8, seed=1)
    other = matrix + np.diag(np.arange(8.0))
    before = other.copy()
    assert find(matrix, 3) == find(other, 3)
    np.testing.assert_array_equal(other, before)


def test_random_subsets_have_the_scores_of_subsets() -> None:
    matrix = similarities(7, seed=3)
    values = random_scores(PairScores(matrix), 3, draws=500, seed=1)
    every = np.array([mean_pair(matrix, subset) for subset in combinations(range(7), 3)])
    indices = np.abs(values[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(values, every[indices], atol=1e-12)
    # All 35 subsets are as likely: each comes up, and about 500 / 35 times.
    counts = np.bincount(indices, minlength=len(every))
    assert counts.min() > 0
    assert counts.max() < 40
    np.testing.assert_array_equal(values, random_scores(PairScores(matrix), 3, draws=500, seed=1))


def test_all_items_are_found_at_once() -> None:
    matrix = similarities(5, seed=0)
    (found,) = search_subsets(PairScores(matrix), 5)
    assert found.members == tuple(range(5))
    assert found.score == pytest.approx(mean_pair(matrix, tuple(range(5))))


@pytest.mark.parametrize("size", [-1, 0, 1, 6])
def test_sizes_that_no_submission_has(size: int) -> None:
    scores = PairScores(similarities(5, seed=0))
    for search in (lambda: next(search_subsets(scores, size)), lambda: random_scores(scores, size, 1)):
        with pytest.raises(ValueError, match=rf"size: {size} of 5 models .* at least 2 and at most 5"):
            search()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_similarities_that_are_no_numbers(value: float) -> None:
    matrix = np.eye(5)
    matrix[3, 1] = matrix[1, 3] = value
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        PairScores(matrix)

"""The search for stimuli that models disagree on, against double-centred Gram matrices of every subset."""

import tracemalloc
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from headstart.metrics.similarity import stimulus_subset_search
from headstart.metrics.similarity.model_subset_search import Search
from headstart.metrics.similarity.stimulus_subset_search import (
    SearchState,
    random_stimulus_subsets,
    worst_stimulus_subset,
)
from headstart.tests.material.catalogs import WIDTHS, Embeddings, make_catalog, mean_cka, with_copies


def find(embeddings: Embeddings, size: int, seed: int = 0) -> Search:
    return worst_stimulus_subset(embeddings, size, seed)[0]


def sweep(embeddings: Embeddings, size: int, **options: Any) -> SearchState:
    """Return the state of a search that does not enumerate."""
    _, state = worst_stimulus_subset(embeddings, size, **options)
    assert state is not None
    return state


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for a short time."""
    monkeypatch.setattr(stimulus_subset_search, "STEPS", 100)


@pytest.fixture
def heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search without enumeration, in several blocks of a small catalog."""
    monkeypatch.setattr(stimulus_subset_search, "EXACT_LIMIT", 0)
    monkeypatch.setattr(stimulus_subset_search, "BLOCK", 16)


@pytest.mark.parametrize("size", [3, 4, 9, 12])
def test_small_catalogs_are_solved(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = make_catalog(12, seed=40 + size)
    values = {subset: mean_cka(embeddings, subset) for subset in combinations(range(12), size)}
    best = min(values, key=lambda subset: values[subset])
    for block in (1, 7 * len(WIDTHS) * size**2, 2**16):
        monkeypatch.setattr(stimulus_subset_search, "NUMBERS", block)
        result = find(embeddings, size)
        assert (result.chosen, result.exact) == (best, True)
        assert result.value == pytest.approx(values[best], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("heuristic")
def test_many_restarts_solve_small_problems(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_subset_search, "STEPS", 1000)
    embeddings = make_catalog(15, seed)
    lowest = min(mean_cka(embeddings, subset) for subset in combinations(range(15), 3))
    assert find(embeddings, 3).value == pytest.approx(lowest, abs=1e-9)


@pytest.mark.parametrize(
    ("stimuli", "size", "exact"), [(84, 3, True), (87, 3, False), (447, 2, True), (35, 33, True), (448, 447, False)]
)
def test_small_searches_are_enumerated(stimuli: int, size: int, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # comb(84, 3) = 95,284, comb(87, 3) = 105,995; 448 subsets of 447 are few, but their Gram matrices large.
    chosen = tuple(range(size))
    state = SearchState(chosen, 0.5, 0.0, chosen)
    monkeypatch.setattr(stimulus_subset_search, "_enumerate", lambda *_: chosen)
    monkeypatch.setattr(stimulus_subset_search, "_sweep", lambda *_: state)
    result, end = worst_stimulus_subset(make_catalog(stimuli, seed=0, widths=(3, 4, 5)), size)
    assert (result.chosen, result.exact, end is None) == (chosen, exact, exact)


def test_better_than_random_subsets() -> None:
    embeddings = make_catalog(80, seed=0, widths=(20, 30, 40, 50))
    values = random_stimulus_subsets(embeddings, 10)
    assert values.shape == (100,)
    assert find(embeddings, 10).value < values.min() - 0.05


@pytest.mark.parametrize("seed", range(3))
def test_planted_disagreement_is_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    planted = np.sort(generator.choice(60, 12, replace=False))
    agreed = np.setdiff1d(np.arange(60), planted)
    # Two far groups that all models see alike, whatever the rotation, and stimuli between that each sees its own way.
    shared = generator.normal(size=(60, 4)) + 20 * generator.choice([-1, 1], 60)[:, None] * np.eye(4)[0]
    embeddings: Embeddings = []
    for _ in range(5):
        embedding = shared @ np.linalg.qr(generator.normal(size=(4, 4)))[0]
        embedding[planted] = generator.normal(size=(12, 4))
        embeddings.append(embedding)
    assert mean_cka(embeddings, agreed.tolist()) == pytest.approx(1)
    assert set(find(embeddings, 8).chosen) <= set(planted.tolist())


def test_results_depend_on_the_seed_alone() -> None:
    embeddings = make_catalog(40, seed=1)
    result = find(embeddings, 6, seed=5)
    assert find(embeddings, 6, seed=5) == result
    values = random_stimulus_subsets(embeddings, 6, seed=5)
    np.testing.assert_array_equal(values, random_stimulus_subsets(embeddings, 6, seed=5))
    assert (values != random_stimulus_subsets(embeddings, 6, seed=6)).any()


def test_location_scale_and_precision_of_embeddings_do_not_matter() -> None:
    embeddings = make_catalog(30, seed=2)
    before = [each.copy() for each in embeddings]
    result = find(embeddings, 5)
    shifted: Embeddings = [1e-3 * each + 70 for each in embeddings]
    rounded: Embeddings = [each.astype(np.float32) for each in embeddings]
    moved, single = find(shifted, 5), find(rounded, 5)
    assert moved.chosen == single.chosen == result.chosen
    assert moved.value == pytest.approx(result.value, abs=1e-9)
    for each, old in zip(embeddings, before, strict=True):
        np.testing.assert_array_equal(each, old)


def test_random_subsets_have_the_values_of_subsets() -> None:
    embeddings = make_catalog(7, seed=3)
    every = np.array([mean_cka(embeddings, subset) for subset in combinations(range(7), 3)])
    values = random_stimulus_subsets(embeddings, 3, count=500)
    nearest = np.abs(values[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(values, every[nearest], rtol=0, atol=1e-12)
    # All 35 subsets are as likely: each comes up, and about 500 / 35 times.
    counts = np.bincount(nearest, minlength=len(every))
    assert counts.min() > 0
    assert counts.max() < 40


@pytest.mark.parametrize("limit", [0, 100_000])
@pytest.mark.parametrize("noise", [0, 1e-7])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_subsets_of_copies_are_passed_over(
    size: int, noise: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stimulus_subset_search, "EXACT_LIMIT", limit)
    embeddings = with_copies(40, distinct=(7, 31), noise=noise)
    result = find(embeddings, size)
    assert {7, 31} & set(result.chosen)
    assert result.value == pytest.approx(mean_cka(embeddings, result.chosen), abs=1e-6 if noise else 1e-9)
    assert random_stimulus_subsets(embeddings, size).max() <= 1 + 1e-9


def test_models_that_distinguish_single_stimuli() -> None:
    embeddings: Embeddings = [np.eye(20)[:, [column]] for column in (3, 8, 15)]
    assert find(embeddings, 3).chosen == (3, 8, 15)
    with pytest.raises(ValueError, match="size: no 2 stimuli were found that every model distinguishes"):
        worst_stimulus_subset(embeddings, 2)
    with pytest.raises(ValueError, match="size: every model distinguishes hardly any 2 stimuli"):
        random_stimulus_subsets(embeddings, 2, count=10)


@pytest.mark.parametrize("search", [worst_stimulus_subset, random_stimulus_subsets])
@pytest.mark.parametrize("size", [-1, 0, 1, 6])
def test_sizes_that_no_submission_has(search: Callable[..., object], size: int) -> None:
    with pytest.raises(ValueError, match=rf"size: {size} of 5 stimuli .* at least 2 and at most 5"):
        search(make_catalog(5, seed=0), size)


@pytest.mark.parametrize("value", [0.1, np.nan])
def test_models_without_a_value(value: float) -> None:
    embeddings = make_catalog(9, seed=0)
    embeddings[2][:] = value
    with pytest.raises(ValueError, match=r"embeddings\[2\]: (.* all rows are equal|contains NaN)"):
        worst_stimulus_subset(embeddings, 3)
    with pytest.raises(ValueError, match=r"embeddings: .* there are 1; give at least 2"):
        worst_stimulus_subset(embeddings[:1], 3)


@pytest.mark.usefixtures("heuristic")
def test_more_steps_try_other_subsets_and_are_never_worse() -> None:
    embeddings = make_catalog(60, seed=3)
    states: list[SearchState] = []
    notes: list[tuple[int, int, str]] = []
    end = sweep(embeddings, 6, keep=states.append, progress=lambda *note: notes.append(note))
    assert end.restart > 0
    assert (end.steps, len(states)) == (100, 101)
    assert [state.value for state in states] == sorted((state.value for state in states), reverse=True)
    assert notes[-1] == (100, 100, f"score so far {1 - end.value:.4f}")
    assert list(end.best) == sorted(set(end.best))
    assert end.value == pytest.approx(mean_cka(embeddings, end.best), abs=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("heuristic")
def test_a_search_is_resumed_where_it_was() -> None:
    embeddings = make_catalog(100, seed=4)
    states: list[SearchState] = []
    whole = sweep(embeddings, 10, seed=2, keep=states.append)
    for left in (states[0], states[len(states) // 2], states[-1]):
        again = sweep(embeddings, 10, seed=2, state=left)
        assert (again.best, again.restart) == (whole.best, whole.restart)
        assert again.value == pytest.approx(whole.value, abs=1e-12)


@pytest.mark.usefixtures("heuristic")
def test_a_time_that_is_over_returns_the_first_subset() -> None:
    end = sweep(make_catalog(60, seed=3), 6, seconds=1e-9)
    assert len(end.best) == 6
    assert (end.sweep, end.block, end.steps) == (0, 0, 0)


@pytest.mark.usefixtures("heuristic")
def test_a_search_takes_its_time() -> None:
    embeddings = make_catalog(60, seed=3)
    short, long = (sweep(embeddings, 6, seconds=seconds) for seconds in (0.1, 0.4))
    assert 0.1 <= short.seconds < 0.4 <= long.seconds
    assert long.steps > short.steps
    assert long.value <= short.value + 1e-12


@pytest.mark.slow
@pytest.mark.usefixtures("heuristic")
def test_the_seed_sets_the_way() -> None:
    embeddings = make_catalog(100, seed=4)
    one, again, other = (sweep(embeddings, 8, seed=seed) for seed in (1, 1, 2))
    assert (one.best, one.value) == (again.best, again.value)
    assert one.members != other.members


def test_embeddings_are_left_alone_and_no_gram_matrix_of_the_catalog_is_made() -> None:
    embeddings: Embeddings = [each.astype(np.float32) for each in make_catalog(20_000, seed=0, widths=(16, 16))]
    before = [each.copy() for each in embeddings]
    tracemalloc.start()
    sweep(embeddings, 20, seconds=0.2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Twice the embeddings, which are read in parts; a Gram matrix would have 1.6 GB.
    assert peak < 2 * sum(each.nbytes for each in embeddings)
    for each, old in zip(embeddings, before, strict=True):
        np.testing.assert_array_equal(each, old)

"""The search in large catalogs, against double-centred Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity import stimulus_subset_sweeps
from headstart.metrics.similarity.centred_catalog import CentredCatalog
from headstart.metrics.similarity.stimulus_subset_search import random_stimulus_subsets, worst_stimulus_subset
from headstart.metrics.similarity.stimulus_subset_sweeps import Members, SweepState, sweep_stimulus_subset


def catalog(stimuli: int, seed: int, widths: Sequence[int] = (3, 8, 40)) -> list[NDArray[np.float32]]:
    """Give embeddings that share a part, off the origin and of unlike scale, one per width."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(stimuli, 5))
    return [
        (
            10.0**place * (3 + shared @ generator.normal(size=(5, width)) + 2 * generator.normal(size=(stimuli, width)))
        ).astype(np.float32)
        for place, width in enumerate(widths)
    ]


def mean_cka(embeddings: Sequence[NDArray[np.float32]], subset: Sequence[int]) -> float:
    """Average linear CKA over pairs of models, by centring matrices."""
    centring = np.eye(len(subset)) - 1 / len(subset)
    rows = [each[list(subset)].astype(np.float64) for each in embeddings]
    grams = [centring @ each @ each.T @ centring for each in rows]
    return float(np.mean([np.sum(a * b) / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in combinations(grams, 2)]))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several blocks and chunks in small catalogs."""
    monkeypatch.setattr(stimulus_subset_sweeps, "BLOCK", 16)
    monkeypatch.setattr(stimulus_subset_sweeps, "CHUNK", 5)


def test_what_joining_and_leaving_would_give() -> None:
    embeddings, members = catalog(30, seed=0), [3, 17, 8, 22, 5, 29, 11]
    subset = Members(CentredCatalog(embeddings, 7), members)
    assert subset.value == pytest.approx(mean_cka(embeddings, members), abs=1e-9)
    others = np.setdiff1d(np.arange(30), members)
    joined = [mean_cka(embeddings, [*members, other]) for other in others]
    np.testing.assert_allclose(subset.values_after_adding(others), joined, atol=1e-5)
    left = [mean_cka(embeddings, [each for each in members if each != leaver]) for leaver in members]
    np.testing.assert_allclose(subset.values_after_leaving(), left, atol=1e-9)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_every_exchange_keeps_the_value_true_and_lowers_it(size: int) -> None:
    embeddings = catalog(60, seed=size)
    subset, changes = Members(CentredCatalog(embeddings, size), range(size)), 0
    generator = np.random.default_rng(0)
    for _ in range(20):
        before, value = subset.members.copy(), subset.value
        if subset.exchange(generator.choice(60, 20, replace=False)):
            changes += 1
            assert subset.value < value
        else:
            assert (subset.members.tolist(), subset.value) == (before.tolist(), value)
        assert len(set(subset.members.tolist())) == size
        assert subset.value == pytest.approx(mean_cka(embeddings, subset.members.tolist()), abs=1e-9)
    assert changes or size == 2


def test_far_below_random_subsets_and_close_to_growth() -> None:
    embeddings = catalog(150, seed=0, widths=(20, 30, 40, 50))
    found = sweep_stimulus_subset(embeddings, 20)
    assert list(found.best) == sorted(set(found.best))
    assert len(found.best) == 20
    assert found.value == pytest.approx(mean_cka(embeddings, found.best), abs=1e-9)
    grown, drawn = worst_stimulus_subset(embeddings, 20).value, random_stimulus_subsets(embeddings, 20).mean()
    assert found.value < grown + 0.2 * (drawn - grown)


@pytest.mark.slow
def test_more_time_tries_other_starts_and_is_never_worse() -> None:
    embeddings = catalog(60, seed=3)
    once = sweep_stimulus_subset(embeddings, 6)
    told: list[tuple[int, int, str]] = []
    longer = sweep_stimulus_subset(embeddings, 6, seconds=1.2, progress=lambda *state: told.append(state))
    assert once.restart == 0
    assert longer.restart > 0
    assert longer.value <= once.value + 1e-12
    assert longer.seconds >= 1.2
    assert told[-1] == (1, 1, f"score so far {1 - longer.value:.4f}")


def test_a_search_goes_on_where_it_was() -> None:
    embeddings = catalog(100, seed=4)
    states: list[SweepState] = []
    whole = sweep_stimulus_subset(embeddings, 10, seed=2, keep=states.append)
    assert len(states) > 4
    for left in (states[0], states[len(states) // 2], states[-1]):
        again = sweep_stimulus_subset(embeddings, 10, seed=2, state=left)
        assert again.best == whole.best
        assert again.value == pytest.approx(whole.value, abs=1e-12)
    assert [state.value for state in states] == sorted((state.value for state in states), reverse=True)


def test_time_that_is_over_gives_what_there_is() -> None:
    embeddings = catalog(60, seed=3)
    found = sweep_stimulus_subset(embeddings, 6, seconds=1e-9)
    assert len(found.best) == 6
    assert (found.sweep, found.block) == (0, 0)


def test_the_seed_sets_the_way() -> None:
    embeddings = catalog(100, seed=4)
    one, again, other = (sweep_stimulus_subset(embeddings, 8, seed=seed) for seed in (1, 1, 2))
    assert (one.best, one.value) == (again.best, again.value)
    assert one.members != other.members


def test_steps_bound_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_subset_sweeps, "STEPS", 3)
    found = sweep_stimulus_subset(catalog(100, seed=4), 10)
    assert (found.sweep, found.block) == (0, 3)


def test_embeddings_are_left_alone_and_no_gram_matrix_of_the_catalog_is_made() -> None:
    import tracemalloc

    embeddings = catalog(20_000, seed=0, widths=(16, 16))
    before = [each.copy() for each in embeddings]
    tracemalloc.start()
    sweep_stimulus_subset(embeddings, 20, seconds=0.2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Twice the embeddings, of which it takes parts; a Gram matrix would have 1.6 GB.
    assert peak < 2 * sum(each.nbytes for each in embeddings)
    for each, old in zip(embeddings, before, strict=True):
        np.testing.assert_array_equal(each, old)


def test_copies_alone_are_refused() -> None:
    embeddings = [np.eye(20, dtype=np.float32)[:, [place]] for place in (3, 8, 15)]
    with pytest.raises(ValueError, match="size: no 2 stimuli were found that every model tells apart"):
        sweep_stimulus_subset(embeddings, 2)

"""The search for stimuli that models disagree on, against double-centred Gram matrices of every subset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity import stimulus_subset_search
from headstart.metrics.similarity.stimulus_subset_search import Subset, random_stimulus_subsets, worst_stimulus_subset

Array = NDArray[np.float64]
WIDTHS = (3, 8, 40)


def catalog(stimuli: int, seed: int, widths: Sequence[int] = WIDTHS) -> list[Array]:
    """Give embeddings that share a part, off the origin and of unlike scale, one per width."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(stimuli, 5))
    return [
        10.0**place * (3 + shared @ generator.normal(size=(5, width)) + 2 * generator.normal(size=(stimuli, width)))
        for place, width in enumerate(widths)
    ]


def mean_cka(embeddings: Sequence[Array], subset: Sequence[int]) -> float:
    """Average linear CKA over pairs of models, by centring matrices."""
    centring = np.eye(len(subset)) - 1 / len(subset)
    grams = [centring @ each[list(subset)] @ each[list(subset)].T @ centring for each in embeddings]
    return float(np.mean([np.sum(a * b) / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in combinations(grams, 2)]))


def held(embeddings: Sequence[Array], members: Sequence[int]) -> Subset:
    """Build a subset member by member, after one exchange."""
    centred = [each - each.mean(axis=0) for each in embeddings]
    subset = Subset([each / np.linalg.norm(each, axis=1).mean() for each in centred])
    for member in [members[0], members[-1], *members[2:-1]]:
        subset.add(member)
    if len(members) > 2:
        subset.add(next(other for other in range(len(embeddings[0])) if other not in members))
        subset.exchange(len(members) - 1, members[1])
    return subset


@pytest.mark.parametrize("members", [[3, 9], [4, 3, 7], [0, 1, 2, 3, 4], [18, 5, 11, 2, 9, 14, 0, 7, 16]])
def test_every_change_of_one_member_is_valued_right(members: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_subset_search, "BLOCK", 7 * len(WIDTHS) ** 2)
    embeddings = catalog(19, seed=len(members))
    subset = held(embeddings, members)
    assert sorted(subset.members) == sorted(members)
    assert subset.value() == pytest.approx(mean_cka(embeddings, members), abs=1e-12)
    others = [stimulus for stimulus in range(19) if stimulus not in members]
    added = subset.values_after_adding()
    expected = [mean_cka(embeddings, [*members, other]) for other in others]
    np.testing.assert_allclose(added[others], expected, rtol=0, atol=1e-12)
    assert np.isinf(added[members]).all()
    for place, leaver in enumerate(subset.members):
        rest = [member for member in members if member != leaver]
        exchanged = subset.values_after_exchange(place)
        expected = [mean_cka(embeddings, [*rest, other]) for other in others]
        np.testing.assert_allclose(exchanged[others], expected, rtol=0, atol=1e-12)
        assert np.isinf(exchanged[members]).all()


@pytest.fixture
def heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do without enumeration."""
    monkeypatch.setattr(stimulus_subset_search, "EXACT_LIMIT", 0)


@pytest.mark.parametrize("size", [2, 3, 5, 12, 25])
@pytest.mark.usefixtures("heuristic")
def test_no_exchange_of_one_improves_what_is_found(size: int) -> None:
    embeddings = catalog(25, seed=size)
    found = worst_stimulus_subset(embeddings, size)
    assert list(found.chosen) == sorted(set(found.chosen))
    assert len(found.chosen) == size
    assert found.value == pytest.approx(mean_cka(embeddings, found.chosen), abs=1e-9)
    assert not found.exact
    for leaver, joiner in product(found.chosen, set(range(25)) - set(found.chosen)):
        neighbour = [*(set(found.chosen) - {leaver}), joiner]
        assert mean_cka(embeddings, neighbour) >= found.value - 1e-8


@pytest.mark.parametrize("size", [3, 4, 9, 12])
def test_small_catalogs_are_solved(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = catalog(12, seed=40 + size)
    values = {subset: mean_cka(embeddings, subset) for subset in combinations(range(12), size)}
    best = min(values, key=lambda subset: values[subset])
    for block in (1, 7 * len(WIDTHS) * size**2, 2**16):
        monkeypatch.setattr(stimulus_subset_search, "BLOCK", block)
        found = worst_stimulus_subset(embeddings, size)
        assert (found.chosen, found.exact) == (best, True)
        assert found.value == pytest.approx(values[best], abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("heuristic")
def test_many_starts_solve_what_few_miss(seed: int) -> None:
    embeddings = catalog(15, seed)
    lowest = min(mean_cka(embeddings, subset) for subset in combinations(range(15), 3))
    assert worst_stimulus_subset(embeddings, 3).value == pytest.approx(lowest, abs=1e-9)


@pytest.mark.parametrize(
    ("stimuli", "size", "exact"), [(84, 3, True), (87, 3, False), (447, 2, True), (35, 33, True), (448, 447, False)]
)
def test_what_is_enumerated(stimuli: int, size: int, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # comb(84, 3) = 95,284, comb(87, 3) = 105,995; 448 subsets of 447 are few, but their Gram matrices large.
    chosen = tuple(range(size))
    monkeypatch.setattr(
        stimulus_subset_search, "_enumerate" if exact else "_search", lambda *_: chosen if exact else [chosen]
    )
    monkeypatch.delattr(stimulus_subset_search, "_search" if exact else "_enumerate")
    found = worst_stimulus_subset(catalog(stimuli, seed=0, widths=(3, 4, 5)), size)
    assert (found.chosen, found.exact) == (chosen, exact)


@pytest.mark.usefixtures("heuristic")
def test_every_exchange_lowers_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = []
    exchange = Subset.exchange

    def watch(self: Subset, place: int, stimulus: int) -> None:
        before = self.value()
        exchange(self, place, stimulus)
        changes.append(self.value() - before)

    monkeypatch.setattr(Subset, "exchange", watch)
    worst_stimulus_subset(catalog(30, seed=1), 6)
    assert changes
    assert max(changes) < 0


def test_better_than_random_subsets() -> None:
    embeddings = catalog(80, seed=0, widths=(20, 30, 40, 50))
    values = random_stimulus_subsets(embeddings, 10)
    assert values.shape == (100,)
    assert worst_stimulus_subset(embeddings, 10).value < values.min() - 0.05


@pytest.mark.parametrize("seed", range(3))
def test_planted_disagreement_is_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    planted = np.sort(generator.choice(60, 12, replace=False))
    agreed = np.setdiff1d(np.arange(60), planted)
    # Two far groups that all models see alike, whatever the rotation, and stimuli between that each sees its own way.
    shared = generator.normal(size=(60, 4)) + 20 * generator.choice([-1, 1], 60)[:, None] * np.eye(4)[0]
    embeddings = []
    for _ in range(5):
        embedding = shared @ np.linalg.qr(generator.normal(size=(4, 4)))[0]
        embedding[planted] = generator.normal(size=(12, 4))
        embeddings.append(embedding)
    assert mean_cka(embeddings, agreed.tolist()) == pytest.approx(1)
    assert set(worst_stimulus_subset(embeddings, 8).chosen) <= set(planted.tolist())


def test_what_is_found_depends_on_the_seed_alone() -> None:
    embeddings = catalog(40, seed=1)
    found = worst_stimulus_subset(embeddings, 6, seed=5)
    assert worst_stimulus_subset(embeddings, 6, seed=5) == found
    values = random_stimulus_subsets(embeddings, 6, seed=5)
    np.testing.assert_array_equal(values, random_stimulus_subsets(embeddings, 6, seed=5))
    assert (values != random_stimulus_subsets(embeddings, 6, seed=6)).any()


@pytest.mark.usefixtures("heuristic")
def test_the_seed_sets_the_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_subset_search, "STARTS", 1)
    monkeypatch.setattr(stimulus_subset_search, "MOST_STARTS", 1)
    embeddings = catalog(60, seed=1)
    assert len({worst_stimulus_subset(embeddings, 4, seed=seed).chosen for seed in range(10)}) > 1


def test_rounds_bound_the_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = catalog(60, seed=1)
    searched = worst_stimulus_subset(embeddings, 6).value
    monkeypatch.setattr(stimulus_subset_search, "ROUNDS", 0)
    grown = worst_stimulus_subset(embeddings, 6)
    assert grown.value == pytest.approx(mean_cka(embeddings, grown.chosen), abs=1e-9)
    assert searched < grown.value


def test_place_scale_and_precision_of_embeddings_do_not_matter() -> None:
    embeddings = catalog(30, seed=2)
    before = [each.copy() for each in embeddings]
    found = worst_stimulus_subset(embeddings, 5)
    moved = worst_stimulus_subset([1e-3 * each + 70 for each in embeddings], 5)
    single = worst_stimulus_subset([each.astype(np.float32) for each in embeddings], 5)
    assert moved.chosen == single.chosen == found.chosen
    assert moved.value == pytest.approx(found.value, abs=1e-9)
    for each, old in zip(embeddings, before, strict=True):
        np.testing.assert_array_equal(each, old)


def test_random_subsets_have_the_values_of_subsets() -> None:
    embeddings = catalog(7, seed=3)
    every = np.array([mean_cka(embeddings, subset) for subset in combinations(range(7), 3)])
    values = random_stimulus_subsets(embeddings, 3, draws=500)
    places = np.abs(values[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(values, every[places], rtol=0, atol=1e-12)
    # All 35 subsets are as likely: each comes up, and about 500 / 35 times.
    counts = np.bincount(places, minlength=len(every))
    assert counts.min() > 0
    assert counts.max() < 40


def with_copies(stimuli: int, distinct: Sequence[int], noise: float = 0) -> list[Array]:
    """Give a catalog in which the second model tells no stimuli apart but some, up to noise of its arithmetic."""
    embeddings = catalog(stimuli, seed=4)
    copies = [stimulus for stimulus in range(stimuli) if stimulus not in distinct]
    embeddings[1][copies] = embeddings[1][copies[0]]
    embeddings[1] *= 1 + noise * np.random.default_rng(5).normal(size=embeddings[1].shape)
    return embeddings


@pytest.mark.parametrize("limit", [0, 100_000])
@pytest.mark.parametrize("noise", [0, 1e-7])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_subsets_of_copies_are_passed_over(
    size: int, noise: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stimulus_subset_search, "EXACT_LIMIT", limit)
    embeddings = with_copies(40, distinct=(7, 31), noise=noise)
    found = worst_stimulus_subset(embeddings, size)
    assert {7, 31} & set(found.chosen)
    assert found.value == pytest.approx(mean_cka(embeddings, found.chosen), abs=1e-6 if noise else 1e-9)
    assert random_stimulus_subsets(embeddings, size).max() <= 1 + 1e-9


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_copies_alone_are_worse_than_any_other_subset(noise: float) -> None:
    embeddings = with_copies(12, distinct=(7,), noise=noise)
    copies = held(embeddings, [2, 5, 4])
    assert copies.value() > 1
    assert set(np.flatnonzero(copies.values_after_adding() < 1)) == {7}
    assert set(np.flatnonzero(copies.values_after_exchange(0) < 1)) == {7}
    for others in combinations((0, 1, 2, 3, 4), 3):
        mixed = held(embeddings, [7, *others])
        assert (mixed.values_after_exchange(mixed.members.index(7)) > 1).all()


def test_models_that_tell_single_stimuli_apart() -> None:
    embeddings = [np.eye(20)[:, [place]] for place in (3, 8, 15)]
    assert worst_stimulus_subset(embeddings, 3).chosen == (3, 8, 15)
    with pytest.raises(ValueError, match="size: no 2 stimuli were found that every model tells apart"):
        worst_stimulus_subset(embeddings, 2)
    with pytest.raises(ValueError, match="size: hardly any 2 stimuli are told apart"):
        random_stimulus_subsets(embeddings, 2, draws=10)


@pytest.mark.parametrize("search", [worst_stimulus_subset, random_stimulus_subsets])
@pytest.mark.parametrize("size", [-1, 0, 1, 6])
def test_sizes_that_no_submission_has(search: Callable[..., object], size: int) -> None:
    with pytest.raises(ValueError, match=rf"size: {size} of 5 stimuli .* at least 2 and at most 5"):
        search(catalog(5, seed=0), size)


@pytest.mark.parametrize("value", [0.1, np.nan])
def test_models_without_a_value(value: float) -> None:
    embeddings = catalog(9, seed=0)
    embeddings[2][:] = value
    with pytest.raises(ValueError, match=r"embeddings\[2\]: one embedding for all stimuli"):
        worst_stimulus_subset(embeddings, 3)
    with pytest.raises(ValueError, match=r"embeddings: .* there are 1; give at least 2"):
        worst_stimulus_subset(embeddings[:1], 3)

"""Orderings and validation parts are drawn by their seed and number alone."""

import numpy as np
import pytest

from headstart.datamodules.orderings import sample_ordering, sample_validation, sample_views


@pytest.mark.parametrize("seed", [0, 7])
def test_orderings_are_permutations_of_their_own(seed: int) -> None:
    drawn = [sample_ordering(50, k, seed) for k in range(20)]
    assert all(sorted(order.tolist()) == list(range(50)) for order in drawn)
    assert len({tuple(order.tolist()) for order in drawn}) == 20
    assert not np.array_equal(sample_ordering(50, 0, seed), sample_ordering(50, 0, seed + 1))


def test_views_are_drawn_evenly_and_by_themselves() -> None:
    drawn = [sample_views(3000, ordering, 0, 4) for ordering in range(3)]
    for views in drawn:
        assert np.abs(np.bincount(views, minlength=4) - 750).max() < 100
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], sample_views(3000, 0, 1, 4))
    assert not np.array_equal(drawn[0], sample_ordering(3000, 0, 0) % 4)


def test_validation_part_is_drawn_by_the_seed_alone() -> None:
    labels = np.arange(100) % 3
    drawn = sample_validation(labels, 30, seed=0)
    assert len(set(drawn.tolist())) == 30
    assert drawn.tolist() == sorted(drawn.tolist()) == sample_validation(labels, 30, seed=0).tolist()
    assert drawn.tolist() != sample_validation(labels, 30, seed=1).tolist()
    assert drawn.tolist() != sorted(sample_ordering(100, 0, seed=0)[:30].tolist())
    assert set(drawn.tolist()) < set(sample_validation(labels, 31, seed=0).tolist())


@pytest.mark.parametrize("counts", [[50, 50], [90, 10], [700, 200, 99, 1], [5, 1, 1, 1], [40] * 25])
def test_validation_part_has_its_share_of_every_class(counts: list[int]) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    for size in range(len(counts), len(labels) + 1, 3):
        drawn = np.bincount(labels[sample_validation(labels, size, seed=4)], minlength=len(counts))
        assert drawn.sum() == size
        assert drawn.min() >= 1
        # One of each may take from the shares of the others.
        share = size * np.array(counts) / len(labels)
        assert np.abs(drawn - share).max() < 1 + (share < 1).sum()


def test_photos_that_cannot_be_taken_leave_the_others_in_place() -> None:
    labels = np.arange(60) % 2
    before = set(sample_validation(labels, 20, seed=0).tolist())
    bad = sorted(before)[:5]
    after = set(sample_validation(labels, 20, seed=0, without=bad).tolist())
    assert before - set(bad) < after
    assert len(after) == 20
    assert np.bincount(labels[sorted(after)]).tolist() == [10, 10]

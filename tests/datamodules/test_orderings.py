"""Orderings and validation parts are drawn by their seed and number alone."""

import numpy as np
import pytest

from headstart.datamodules.orderings import (
    balanced_ordering,
    sample_ordering,
    sample_selection,
    sample_validation,
)
from headstart.output.errors import UserError


def in_blocks(labels: list[int], shuffled: list[int]) -> list[set[int]]:
    """Return the samples of each block, found one by one: the next of each class in a shuffled order."""
    blocks: list[set[int]] = []
    left = list(shuffled)
    while True:
        block: dict[int, int] = {}
        for sample in left:
            block.setdefault(labels[sample], sample)
        if len(block) < len(set(labels)):
            return blocks
        left = [sample for sample in left if sample not in block.values()]
        blocks.append(set(block.values()))


@pytest.mark.parametrize(("counts", "seed", "ordering"), [([6, 6], 0, 0), ([9, 4, 1], 5, 3), ([3, 20, 5, 7], 0, 3)])
def test_every_block_of_a_balanced_ordering_holds_each_class_once(counts: list[int], seed: int, ordering: int) -> None:
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(len(counts)), counts))
    order = balanced_ordering(labels, ordering, seed)
    blocks = in_blocks(labels.tolist(), sample_ordering(len(labels), ordering, seed).tolist())
    assert len(blocks) == min(counts)
    assert [set(block.tolist()) for block in np.split(order, len(blocks))] == blocks


def test_classes_of_a_block_come_in_any_order() -> None:
    labels = np.repeat(np.arange(3), [200, 2000, 200])
    blocks = labels[balanced_ordering(labels, 0, 0)].reshape(-1, 3)
    # Each of the 6 orders in about 33 of 200 blocks, a large class not sooner than others.
    _, counts = np.unique(blocks, axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 15
    assert not np.array_equal(blocks, labels[balanced_ordering(labels, 1, 0)].reshape(-1, 3))
    assert not np.array_equal(blocks, labels[balanced_ordering(labels, 0, 1)].reshape(-1, 3))


def test_validation_part_is_drawn_by_the_seed_alone() -> None:
    labels = np.arange(100) % 3
    drawn = sample_validation(labels, 30, seed=0)
    assert len(set(drawn.tolist())) == 30
    assert drawn.tolist() == sorted(drawn.tolist()) == sample_validation(labels, 30, seed=0).tolist()
    assert drawn.tolist() != sample_validation(labels, 30, seed=1).tolist()
    assert drawn.tolist() != sorted(sample_ordering(100, 0, seed=0)[:30].tolist())
    assert set(drawn.tolist()) < set(sample_validation(labels, 31, seed=0).tolist())


@pytest.mark.parametrize("counts", [[50, 50], [700, 200, 99, 1], [5, 1, 1, 1]])
def test_validation_part_has_its_share_of_every_class(counts: list[int]) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    for size in range(len(counts), len(labels) + 1, 3):
        drawn = np.bincount(labels[sample_validation(labels, size, seed=4)], minlength=len(counts))
        assert drawn.sum() == size
        assert drawn.min() >= 1
        # One of each may take from the shares of the others.
        share = size * np.array(counts) / len(labels)
        assert np.abs(drawn - share).max() < 1 + (share < 1).sum()


def test_photos_of_equal_content_are_selected_together() -> None:
    contents = np.random.default_rng(0).permutation(np.repeat(np.arange(150), np.where(np.arange(150) % 3, 1, 5)))
    labels = (contents >= 100).astype(int)
    selected = sample_selection(labels, contents, 0.2, 5)
    assert not set(contents[selected]) & set(np.delete(contents, selected))
    # Each class has its share of the 100 and 50 different photos.
    assert np.bincount(np.unique(contents[selected]) >= 100).tolist() == [20, 10]


def test_a_photo_of_two_classes_is_on_one_side() -> None:
    labels, contents = np.repeat([0, 1], 10), np.concatenate([np.arange(10), np.arange(5, 15)])
    for seed in range(5):
        selected = sample_selection(labels, contents, 0.4, seed)
        assert not set(contents[selected]) & set(np.delete(contents, selected))
    # The second class has no photo of its own that could be trained on; and shares that are too small or large.
    alone = np.repeat([0, 1, 2], [50, 40, 1])
    for of, contents, share, count in (
        (np.array([0, 0, 0, 1]), np.array([1, 2, 3, 3]), 0.4, "[12] of 4"),
        (alone, np.arange(91), 0.01, "1 of 91"),
        (alone, np.arange(91), 0.97, "88 of 91"),
        (alone[:90], np.arange(90), 1.0, "90 of 90"),
    ):
        with pytest.raises(UserError, match=f"data.selection_share: {share} given, which selects {count}"):
            sample_selection(of, contents, share, 0)

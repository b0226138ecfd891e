"""Folds and orderings of few labels, against plain counts."""

import numpy as np
import pytest

from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds


def test_each_fold_of_equal_classes_leaves_out_one_of_each() -> None:
    labels = np.repeat([0, 1, 2], 5)
    assert count_folds(labels) == 5
    for split in stratified_folds(labels, 5, 4, seed=0):
        for fold in range(5):
            assert sorted(labels[split == fold]) == [0, 1, 2]


def test_folds_of_unequal_classes_differ_by_one() -> None:
    labels = np.array([0] * 23 + [1] * 4 + [2] * 11)
    split = stratified_folds(labels, 10, 1, seed=3)[0]
    assert np.ptp(np.bincount(split)) <= 1
    for label in range(3):
        assert np.ptp(np.bincount(split[labels == label], minlength=10)) <= 1


def test_the_only_sample_of_a_class_is_never_left_out() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    splits = stratified_folds(labels, count_folds(labels), 3, seed=0)
    assert (splits[:, 5] == KEPT).all()
    assert (splits[:, :5] != KEPT).all()


def test_splits_do_not_depend_on_their_number() -> None:
    labels = np.repeat([0, 1], 7)
    assert (stratified_folds(labels, 7, 5, 1)[:2] == stratified_folds(labels, 7, 2, 1)).all()
    assert (proportional_orderings(labels, 5, 1)[:2] == proportional_orderings(labels, 2, 1)).all()


@pytest.mark.parametrize("sizes", [(6, 6, 6), (2, 9), (1, 5, 30)])
def test_beginnings_of_orderings_have_their_share_of_every_class(sizes: tuple[int, ...]) -> None:
    labels = np.repeat(range(len(sizes)), sizes)
    for order in proportional_orderings(labels, 6, seed=0):
        assert sorted(order) == list(range(len(labels)))
        for length in range(1, len(labels) + 1):
            counts = np.bincount(labels[order[:length]], minlength=len(sizes))
            assert (abs(counts - length * np.array(sizes) / len(labels)) <= 1 + 1e-9).all()
    if len(set(sizes)) == 1:
        blocks = labels[proportional_orderings(labels, 6, seed=0)].reshape(6, -1, len(sizes))
        assert (np.sort(blocks) == np.arange(len(sizes))).all()

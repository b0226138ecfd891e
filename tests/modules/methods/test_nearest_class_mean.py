"""Nearest class mean against distances to means computed sample by sample."""

from __future__ import annotations

from collections.abc import Callable

import torch

from modules.method import Method
from modules.methods.nearest_class_mean import NearestClassMean


def test_predicts_the_nearest_mean(
    draw: Callable[..., tuple[torch.Tensor, torch.Tensor]], feed: Callable[..., Method]
) -> None:
    inputs, labels = draw(orderings=3, samples=30, features=10, classes=3)
    validation = torch.randn(50, 10)
    predicted = feed(NearestClassMean(), inputs, labels, batch=7, classes=3)(validation).argmax(-1)
    for ordering in range(3):
        means = torch.stack([inputs[ordering, labels[ordering] == c].mean(0) for c in range(3)])
        assert torch.equal(predicted[ordering], torch.cdist(validation, means).argmin(-1))


def test_class_without_a_sample_is_not_predicted(feed: Callable[..., Method]) -> None:
    inputs, labels = torch.randn(2, 5, 4), torch.tensor([[0, 0, 2, 0, 2], [1, 1, 1, 1, 1]])
    logits = feed(NearestClassMean(), inputs, labels, classes=3)(torch.randn(40, 4))
    assert 1 not in logits[0].argmax(-1)
    assert set(logits[1].argmax(-1).tolist()) == {1}


def test_batch_size_is_irrelevant(assert_batch_size_is_irrelevant: Callable[..., None]) -> None:
    assert_batch_size_is_irrelevant(NearestClassMean)


def test_alone_as_among_many(assert_alone_as_among_many: Callable[..., None]) -> None:
    assert_alone_as_among_many(NearestClassMean)

"""The imprinted cosine classifier against imprinting and training one ordering by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from modules.method import Method
from modules.methods.cosine_classifier import CosineClassifier


def still(parameters: Iterable[Any]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def test_first_samples_imprint_their_mean_direction(
    draw: Callable[..., tuple[Tensor, Tensor]], feed: Callable[..., Method]
) -> None:
    inputs, labels = draw(orderings=3, samples=30, features=10, classes=3)
    logits = feed(CosineClassifier(still, imprint_samples=4, scale=7.0), inputs, labels, classes=3)(inputs[0])
    for ordering in range(3):
        unit = functional.normalize(inputs[ordering], dim=-1)
        means = torch.stack([unit[labels[ordering] == c][:4].mean(0) for c in range(3)])
        expected = 7 * functional.cosine_similarity(inputs[0][:, None], means, dim=-1)
        torch.testing.assert_close(logits[ordering], expected)


def test_a_step_descends_on_the_cross_entropy_of_scaled_cosines(feed: Callable[..., Method]) -> None:
    inputs, labels = torch.randn(1, 2, 6), torch.tensor([[0, 1]])
    method = CosineClassifier(lambda p: torch.optim.SGD(p, lr=0.1), imprint_samples=1)
    feed(method, inputs, labels, batch=2)
    weight = functional.normalize(inputs[0], dim=-1).requires_grad_()
    scale = torch.tensor(10.0, requires_grad=True)
    cosines = functional.normalize(inputs[0], dim=-1) @ functional.normalize(weight, dim=-1).mT
    functional.cross_entropy(scale * cosines, labels[0]).backward()
    assert weight.grad is not None
    assert scale.grad is not None
    torch.testing.assert_close(method.weight[0].mT, weight - 0.1 * weight.grad)
    torch.testing.assert_close(method.scale.flatten(), (scale - 0.1 * scale.grad)[None])


def test_class_without_a_sample_is_not_predicted(feed: Callable[..., Method]) -> None:
    inputs, labels = torch.randn(2, 5, 4), torch.tensor([[0, 0, 2, 0, 2], [1, 1, 1, 1, 1]])
    logits = feed(CosineClassifier(), inputs, labels, classes=3)(torch.randn(40, 4))
    assert logits.isfinite().any(-1).all()
    assert 1 not in logits[0].argmax(-1)
    assert set(logits[1].argmax(-1).tolist()) == {1}


def test_alone_as_among_many(assert_alone_as_among_many: Callable[..., None]) -> None:
    assert_alone_as_among_many(CosineClassifier)

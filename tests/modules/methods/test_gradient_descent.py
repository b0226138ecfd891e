"""Gradient descent, with replay or imprinted cosines too, for many orderings against a plain loop for one of them."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adam, Optimizer

from headstart.modules import GradientDescent, Replay
from headstart.modules.method import sample_head
from headstart.modules.methods.cosine_classifier import CosineClassifier
from headstart.tests.material.streams import (
    adapt,
    batches,
    begin,
    feed,
    make_start,
    random_photos,
    random_samples,
    tiny_backbone,
)

MakeOptimizer = Callable[..., Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "Adam": lambda p: Adam(p, lr=1e-2),
    "default": lambda p: Adam(p, lr=1e-3),
    "SGD": lambda p: SGD(p, lr=0.1),
    "momentum": lambda p: SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
}
# Two steps at each of three batches of two, with all that was seen.
REPLAYED = [slice(end) for end in (2, 2, 4, 4, 6, 6)]


def parts(samples: int, batch: int) -> list[slice]:
    return [slice(first, first + batch) for first in range(0, samples, batch)]


def require_as_in_a_loop(
    method: Any,
    inputs: Tensor,
    labels: Tensor,
    steps: Iterable[slice],
    make: MakeOptimizer,
    ordering: int = 0,
    backbone: nn.Module | None = None,
) -> None:
    """Hold what a method has learnt in one ordering to a plain loop, each of whose steps takes some samples."""
    plain = nn.Identity() if backbone is None else deepcopy(backbone)
    head, bias = (
        value.requires_grad_()
        for value in sample_head(method.start.features, method.start.classes, seed=0, ordering=ordering)
    )
    optimizer = make([head, bias, *plain.parameters()])
    for step in steps:
        optimizer.zero_grad()
        functional.cross_entropy(plain(inputs[step]) @ head + bias, labels[step]).backward()
        optimizer.step()
    learnt = [method.weight[ordering], method.bias[ordering], *(method.backbone or plain).parameters()]
    for ours, theirs in zip(learnt, [head, bias, *plain.parameters()], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "batch", "classes"), [("default", 1, 5), ("Adam", 1, 5), ("SGD", 4, 2), ("momentum", 4, 5)]
)
def test_every_ordering_as_a_layer_trained_alone(name: str, batch: int, classes: int) -> None:
    # 30 samples leave a smaller last batch of 4.
    inputs, labels = random_samples(orderings=5, samples=30, features=12, classes=classes)
    shipped = GradientDescent() if name == "default" else GradientDescent(OPTIMIZERS[name])
    method: Any = feed(shipped, inputs, labels, batch=batch, classes=classes)
    for ordering in range(5):
        require_as_in_a_loop(method, inputs[ordering], labels[ordering], parts(30, batch), OPTIMIZERS[name], ordering)
    with torch.no_grad():
        expected = inputs[0] @ method.weight + method.bias[:, None]
        torch.testing.assert_close(method(inputs[0]), expected, rtol=1e-5, atol=1e-5)


def test_trainable_backbone_is_fine_tuned_as_in_a_plain_loop() -> None:
    photos, labels = random_photos(8)
    method = feed(GradientDescent(OPTIMIZERS["Adam"]), photos, labels, batch=4)
    require_as_in_a_loop(method, photos[0], labels[0], parts(8, 4), OPTIMIZERS["Adam"], backbone=tiny_backbone())


def test_replay_takes_the_batch_and_all_of_a_small_memory() -> None:
    inputs, labels = random_samples(orderings=2, samples=6, features=5)
    method = feed(Replay(OPTIMIZERS["SGD"], replay_size=100, steps=2), inputs, labels, batch=2)
    for ordering in range(2):
        require_as_in_a_loop(method, inputs[ordering], labels[ordering], REPLAYED, OPTIMIZERS["SGD"], ordering)


def test_replay_draws_as_many_as_asked() -> None:
    sizes = []

    class Counting(Replay):
        def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
            sizes.append(labels.shape[1])
            return super().loss(logits, labels)

    feed(Counting(replay_size=3, steps=1), torch.randn(2, 10, 4), torch.randint(2, (2, 10)), batch=2)
    assert sizes == [2, 4, 5, 5, 5]


class Scaled(nn.Module):
    """Takes bytes, as a backbone does."""

    def forward(self, photos: Tensor) -> Tensor:
        assert photos.dtype == torch.uint8
        return photos / 255


def test_a_trained_backbone_sees_the_memory_anew() -> None:
    photos, labels = random_photos(6)
    pixels = (60 * photos + 90).to(torch.uint8)
    backbone, method = nn.Sequential(Scaled(), tiny_backbone()), Replay(OPTIMIZERS["SGD"], replay_size=100, steps=2)
    begin(method, replace(make_start(photos), backbone=backbone))
    for batch in batches(pixels, labels, 2):
        adapt(method, batch)
    assert method.memory.matrix.dtype == torch.uint8
    require_as_in_a_loop(method, pixels[0], labels[0], REPLAYED, OPTIMIZERS["SGD"], backbone=backbone)


def still(parameters: Iterable[Any]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def test_first_samples_imprint_their_mean_direction() -> None:
    inputs, labels = random_samples(orderings=3, samples=30, features=10, classes=3)
    logits = feed(CosineClassifier(still, imprint_samples=4, scale=7.0), inputs, labels, classes=3)(inputs[0])
    for ordering in range(3):
        unit = functional.normalize(inputs[ordering], dim=-1)
        means = torch.stack([unit[labels[ordering] == c][:4].mean(0) for c in range(3)])
        expected = 7 * functional.cosine_similarity(inputs[0][:, None], means, dim=-1)
        torch.testing.assert_close(logits[ordering], expected)


def test_a_step_descends_on_the_cross_entropy_of_scaled_cosines() -> None:
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

"""Gradient descent for many orderings at once against `torch.nn.Linear`, trained one ordering at a time."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adam, Optimizer

from headstart.modules.method import MethodStart, sample_head
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.tests.material.streams import feed, random_samples

MakeOptimizer = Callable[..., Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "Adam": lambda p: Adam(p, lr=1e-2),
    "SGD": lambda p: SGD(p, lr=0.1),
    "momentum": lambda p: SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
}


def train_linear(
    inputs: Tensor, labels: Tensor, classes: int, batch: int, make: MakeOptimizer, ordering: int
) -> nn.Linear:
    """Train a plain linear layer on one ordering."""
    layer = nn.Linear(inputs.shape[1], classes)
    weight, bias = sample_head(inputs.shape[1], classes, seed=0, ordering=ordering)
    with torch.no_grad():
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias)
    optimizer = make(layer.parameters())
    for part, part_labels in zip(inputs.split(batch), labels.split(batch), strict=True):
        optimizer.zero_grad()
        functional.cross_entropy(layer(part), part_labels).backward()
        optimizer.step()
    return layer


@pytest.mark.parametrize(("name", "batch", "classes"), [("Adam", 1, 5), ("SGD", 4, 2), ("momentum", 4, 5)])
def test_every_ordering_as_a_layer_trained_alone(name: str, batch: int, classes: int) -> None:
    # 30 samples leave a smaller last batch of 4.
    inputs, labels = random_samples(orderings=5, samples=30, features=12, classes=classes)
    method = feed(GradientDescent(OPTIMIZERS[name]), inputs, labels, batch=batch, classes=classes)
    assert isinstance(method, GradientDescent)
    for k in range(5):
        layer = train_linear(inputs[k], labels[k], classes, batch, OPTIMIZERS[name], k)
        torch.testing.assert_close(method.weight[k], layer.weight.T, rtol=0, atol=1e-6)
        torch.testing.assert_close(method.bias[k], layer.bias, rtol=0, atol=1e-6)
        with torch.no_grad():
            torch.testing.assert_close(method(inputs[0])[k], layer(inputs[0]), rtol=1e-5, atol=1e-5)


def test_default_is_adam() -> None:
    inputs, labels = random_samples(orderings=1, samples=20, features=6)
    method = feed(GradientDescent(), inputs, labels)
    layer = train_linear(inputs[0], labels[0], 2, 1, lambda p: Adam(p, lr=1e-3), 0)
    torch.testing.assert_close(method.state_dict()["weight"][0], layer.weight.detach().T, rtol=0, atol=1e-6)


def test_trainable_backbone_is_fine_tuned_as_in_a_plain_loop() -> None:
    torch.manual_seed(0)
    batch = 4
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh())
    inputs, labels = torch.randn(1, 8, 3, 2, 2), torch.randint(2, (1, 8))
    method = GradientDescent(OPTIMIZERS["Adam"])
    method.begin(MethodStart(6, 2, range(1), max_samples=8, seed=0, backbone=backbone))
    method.build_optimizers()

    plain = deepcopy(backbone)
    head, bias = (nn.Parameter(value) for value in sample_head(6, 2, seed=0, ordering=0))
    optimizer = Adam([head, bias, *plain.parameters()], lr=1e-2)
    for part, part_labels in zip(inputs.split(batch, 1), labels.split(batch, 1), strict=True):
        method.adapt(part, part_labels)
        optimizer.zero_grad()
        functional.cross_entropy(plain(part[0]) @ head + bias, part_labels[0]).backward()
        optimizer.step()
    torch.testing.assert_close(method.weight[0], head, rtol=0, atol=1e-6)
    assert method.backbone is not None
    for ours, theirs in zip(method.backbone.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)

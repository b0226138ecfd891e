"""A small network with stages, biases and batch norm, and what becomes of its weights."""

import torch
from torch import Tensor, nn

from headstart.modules.method import Method, MethodStart
from headstart.tests.material.streams import random_photos

WIDTH = 5


def staged() -> nn.Module:
    """Build a network of three stages within one module, as torchvision's have them."""
    torch.manual_seed(0)
    stages = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.Tanh()),
        nn.Sequential(nn.Flatten(), nn.Linear(16, WIDTH), nn.LayerNorm(WIDTH)),
    )
    return nn.Sequential(stages, nn.Identity()).eval()


def begin(method: Method, backbone: nn.Module | None) -> Method:
    """Call a method's `setup` as a comparison does."""
    method.begin(MethodStart(WIDTH, 2, range(1), max_samples=50, seed=0, backbone=backbone))
    method.build_optimizers()
    return method


def weights(method: Method) -> dict[str, Tensor]:
    """Copy the weights of a method's backbone, by name."""
    assert method.backbone is not None
    return {name: value.detach().clone() for name, value in method.backbone.named_parameters()}


def moved(method: Method, samples: int) -> set[str]:
    """Feed a method samples one by one; name the weights of the backbone that have changed."""
    before = weights(method)
    photos, labels = random_photos(samples)
    for index in range(samples):
        method.adapt(photos[:, index : index + 1], labels[:, index : index + 1])
    return {name for name, value in weights(method).items() if not torch.equal(value, before[name])}

"""A stem and the tail behind it are the whole network."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.cut_networks import CUTS, build_cut
from headstart.tests.material.mistakes import refusal
from headstart.tests.material.networks import random_photos

MOBILE = CUTS[0][:2]


@pytest.mark.parametrize(("name", "arguments", "boundary"), CUTS)
def test_features_and_gradients_are_those_of_the_whole(name: str, arguments: dict[str, Any], boundary: str) -> None:
    backbone, photos = build_cut(name, arguments), random_photos(4)
    parts = cut(backbone, boundary)
    wanted = dict(backbone.network.named_parameters())
    weights = dict(parts.tail.named_parameters())
    assert weights
    assert len(weights) < len(wanted)
    assert all(value is wanted[path] for path, value in weights.items())
    direction = torch.randn(backbone.width, generator=torch.Generator().manual_seed(1))

    whole = backbone(photos)
    gradients = torch.autograd.grad((whole @ direction).sum(), list(weights.values()))
    with torch.no_grad():
        activations = parts.stem(photos)
    assert activations.shape == (4, *parts.shape)
    features = parts.tail(activations.clone())
    torch.testing.assert_close(features, whole, rtol=1e-5, atol=1e-5)
    actual = torch.autograd.grad((features @ direction).sum(), list(weights.values()))
    for path, gradient, expected in zip(weights, actual, gradients, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4, msg=path)


IMPOSSIBLE = [
    ("mobilenet_v2", "feature.14", "no module 'feature.14'; the closest name is features.14$"),
    ("mobilenet_v2", "features.0", "nothing comes before 'features.0'; give all, or a later module$"),
    ("mobilenet_v2", "features", "nothing comes before 'features'"),
    ("mobilenet_v2", "classifier", "no weights from 'classifier' on; give an earlier module, or all$"),
    ("resnet18", "layer3.1.relu", "'layer3.1.relu' is called 2 times in one forward pass"),
    ("resnet18", "layer3.1.conv2", "2 values cross the boundary before 'layer3.1.conv2'.*; give layer3.1, or all$"),
]


def test_impossible_boundaries_are_reported() -> None:
    networks = {name: build_cut(name, {}) for name in ("mobilenet_v2", "resnet18")}
    for name, boundary, words in IMPOSSIBLE:
        message = refusal(partial(cut, networks[name], boundary))
        assert re.search(f"^trainable_from: .*{words}", message)


# Code that depends on values, and on what tracing does not see.
UNCUT: list[tuple[Callable[[Tensor, Tensor], Tensor], str]] = [
    (lambda images, features: features if images.mean() > 0 else -features, "the code around 'features.14' cannot"),
    (lambda images, features: features if isinstance(images, Tensor) else 2 * features, "returns other features"),
]


@pytest.mark.parametrize(("change", "words"), UNCUT)
def test_code_that_cannot_be_cut(change: Callable[[Tensor, Tensor], Tensor], words: str) -> None:
    backbone = build_cut(*MOBILE)
    features = backbone.network.get_submodule("features")

    class Changed(nn.Sequential):
        def forward(self, images: Tensor) -> Tensor:
            return change(images, super().forward(images))  # type: ignore[no-untyped-call]

    features.__class__ = Changed
    message = refusal(partial(cut, backbone, "features.14"))
    assert words in message


class Odd(nn.Module):
    """Works in place on its input, has integers between its layers, and may give what is not a number."""

    def __init__(self, divisor: float = 1.0) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 4, 3), nn.Embedding(10, 4), nn.Linear(4, 4)
        self.divisor = divisor

    def forward(self, images: Tensor) -> Tensor:
        images -= 0.5
        rows = (self.first(images).mean((2, 3)).abs() * 3).long().clamp(0, 9)
        features: Tensor = self.third(self.second(rows).mean(1) * 0 / self.divisor)
        return features


def test_networks_with_integers_or_that_work_in_place_on_their_input() -> None:
    small = Preprocessing(resize=16, crop=16)
    cut(Backbone(Odd(), 4, None, small), "third")
    integers = "before 'second' are torch.int64, where floating-point activations"
    assert integers in refusal(partial(cut, Backbone(Odd(), 4, None, small), "second"))
    assert "as a whole, or NaN; give all" in refusal(partial(cut, Backbone(Odd(0.0), 4, None, small), "third"))


def test_memory_of_the_whole_relative_to_that_of_the_tail() -> None:
    # 64 maps of 16 x 16 behind the first convolution; 256 of 2 x 2, and 512 of 1 x 1.
    backbone = build_cut("resnet18", {})
    assert cut(backbone, "layer3.1").relief == 64 * 16**2 / (256 * 2**2)
    assert cut(backbone, "layer4.1").relief == 64 * 16**2 / 512

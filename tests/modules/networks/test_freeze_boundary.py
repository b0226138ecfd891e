"""A stem and the tail behind it are the whole network."""

from typing import Any

import pytest
import torch
from torch import nn

from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.tests.material.cut_networks import CUTS, build_cut, random_photos

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


@pytest.mark.parametrize(
    ("name", "boundary", "message"),
    [
        ("mobilenet_v2", "feature.14", "no module 'feature.14'; the closest name is features.14$"),
        ("mobilenet_v2", "features.0", "nothing comes before 'features.0'; give all, or a later module$"),
        ("mobilenet_v2", "features", "nothing comes before 'features'"),
        ("mobilenet_v2", "classifier", "no weights from 'classifier' on; give an earlier module, or all$"),
        ("resnet18", "layer3.1.relu", "'layer3.1.relu' is called 2 times in one forward pass"),
        (
            "resnet18",
            "layer3.1.conv2",
            "2 values cross the boundary before 'layer3.1.conv2'.*; give layer3.1, .*or all$",
        ),
    ],
)
def test_impossible_boundaries_are_reported(name: str, boundary: str, message: str) -> None:
    with pytest.raises(UserError, match=rf"^trainable_from: .*{message}") as caught:
        cut(build_cut(name, {}), boundary)
    assert "\n" not in str(caught.value)


def test_advised_boundaries_can_be_given() -> None:
    backbone = build_cut("resnet18", {})
    with pytest.raises(UserError) as caught:
        cut(backbone, "layer3.1.conv2")
    for path in str(caught.value).rpartition("give ")[2].removesuffix(", or all").split(", "):
        cut(backbone, path)


def test_code_that_depends_on_values_cannot_be_cut() -> None:
    backbone = build_cut(*MOBILE)
    features = backbone.network.get_submodule("features")
    original = type(features).forward

    class Undecided(nn.Sequential):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = original(self, images)
            return features if images.mean() > 0 else -features

    features.__class__ = Undecided
    with pytest.raises(UserError, match=r"^trainable_from: the code around 'features.14' cannot be traced .*or all$"):
        cut(backbone, "features.14")


def test_code_that_depends_on_what_tracing_does_not_see_is_found_out() -> None:
    backbone = build_cut(*MOBILE)
    features = backbone.network.get_submodule("features")
    original = type(features).forward

    class Traced(nn.Sequential):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = original(self, images)
            return features if isinstance(images, torch.Tensor) else 2 * features

    features.__class__ = Traced
    with pytest.raises(UserError, match=r"^trainable_from: .*returns other features than as a whole; give all$"):
        cut(backbone, "features.14")


class Odd(nn.Module):
    """Works in place on its input, has integers between its layers, and may give what is not a number."""

    def __init__(self, divisor: float = 1.0) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 4, 3), nn.Embedding(10, 4), nn.Linear(4, 4)
        self.divisor = divisor

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        images -= 0.5
        rows = (self.first(images).mean((2, 3)).abs() * 3).long().clamp(0, 9)
        features: torch.Tensor = self.third(self.second(rows).mean(1) * 0 / self.divisor)
        return features


def test_a_network_that_works_in_place_on_its_input_can_be_cut() -> None:
    cut(Backbone(Odd(), 4, None, Preprocessing(resize=16, crop=16)), "third")


def test_integers_cannot_cross() -> None:
    with pytest.raises(
        UserError, match=r"^trainable_from: .*before 'second' are torch.int64, where floating-point activations"
    ):
        cut(Backbone(Odd(), 4, None, Preprocessing(resize=16, crop=16)), "second")


def test_features_that_are_no_numbers_are_no_features() -> None:
    with pytest.raises(UserError, match=r"^trainable_from: .*not finite"):
        cut(Backbone(Odd(0.0), 4, None, Preprocessing(resize=16, crop=16)), "third")


def test_memory_of_the_whole_relative_to_that_of_the_tail() -> None:
    # 64 maps of 16 x 16 behind the first convolution; 256 of 2 x 2, and 512 of 1 x 1.
    backbone = build_cut("resnet18", {})
    assert cut(backbone, "layer3.1").relief == 64 * 16**2 / (256 * 2**2)
    assert cut(backbone, "layer4.1").relief == 64 * 16**2 / 512

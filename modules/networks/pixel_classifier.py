"""Networks that classify every pixel, made of networks that classify photos."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torchvision.models.feature_extraction import create_feature_extractor

from headstart.output.errors import UserError, reason_of

# Pixels of the picture for one of a feature map, in either direction.
STRIDES = (4, 8, 16, 32)


class FeatureMap(NamedTuple):
    """A feature map that a network computes.

    Attributes:
        layer: Path of the module whose output it is.
        stride: Pixels of the picture for one of the map.
        channels: Its channels.
    """

    layer: str
    stride: int
    channels: int


class PixelClassifier(nn.Module):
    """Feature maps of several strides, brought to the size of the largest and side by side, under a linear classifier.

    Source: Jingdong Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition", TPAMI 2020,
    section 3 (HRNetV2). Maps of lower resolution are interpolated bilinearly and concatenated.

    Args:
        network: A network that classifies photos; only its layers up to the maps are used.
        side: Side of the pictures in pixels.
        classes: Number of classes.

    Attributes:
        body: From images to the maps, by the paths of the modules that compute them.
        maps: The maps, the largest first.
        classifier: Linear, from the features of a pixel to logits.
        num_classes: Number of classes; 0 where the classifier is random while the body was trained.

    Raises:
        UserError: The network has no such maps, or its code cannot be traced.
    """

    def __init__(self, network: nn.Module, side: int, classes: int) -> None:
        super().__init__()
        self.maps = find_maps(network, side)
        try:
            self.body = create_feature_extractor(network, [feature_map.layer for feature_map in self.maps])
        except Exception as error:  # tracing fails with errors of many unrelated kinds
            raise UserError(
                f"name: the feature maps of {type(network).__name__} cannot be taken out of it ({reason_of(error)}); "
                "give another network"
            ) from error
        self.pixels = SideBySide()
        self.classifier = nn.Linear(sum(feature_map.channels for feature_map in self.maps), classes)
        self.num_classes = classes

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `[samples, height / 4, width / 4, classes]`, the channels last for a linear classifier."""
        logits: Tensor = self.classifier(self.pixels(list(self.body(images).values())).movedim(1, -1))
        return logits


def is_of_pixels(names: Iterable[str]) -> bool:
    """Return whether a network is a `PixelClassifier`, by the names of its weights."""
    return all(name.startswith(("body.", "classifier.")) for name in names)


class SideBySide(nn.Module):
    """Interpolates maps to the size of the first and concatenates them."""

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        """Return the maps together, `[samples, sum of channels, height, width]`."""
        first, *others = maps
        size = first.shape[-2:]
        return torch.cat([first, *(functional.interpolate(smaller, size, mode="bilinear") for smaller in others)], 1)


def describe_maps(network: nn.Module) -> dict[str, Any]:
    """Return the feature maps of a network under their name in `results.json`; nothing unless it classifies pixels."""
    if not isinstance(network, PixelClassifier):
        return {}
    return {"feature_maps": [feature_map._asdict() for feature_map in network.maps]}


@torch.no_grad()
def find_maps(network: nn.Module, side: int) -> list[FeatureMap]:
    """Find the modules that compute a network's feature maps: for every stride the last of the outermost ones.

    Args:
        network: A network that classifies photos; it is in evaluation mode.
        side: Side of the pictures in pixels.

    Returns:
        The maps, the largest first.

    Raises:
        UserError: There are fewer than two.
    """
    channels_by_size: dict[int, dict[str, int]] = {}
    paths = {module: path for path, module in network.named_modules() if path}

    def record(module: nn.Module, _inputs: object, output: object) -> None:
        if module in paths and isinstance(output, Tensor) and output.ndim == 4 and output.shape[2] == output.shape[3]:
            channels_by_size.setdefault(output.shape[2], {})[paths[module]] = output.shape[1]

    with register_module_forward_hook(record):
        network(torch.zeros(1, 3, side, side))

    maps = []
    for stride in STRIDES:
        # Modules are recorded when they end; the outermost are whole stages, others may be parts of a stage. Small
        # pictures have maps of one size for several strides.
        if layers := channels_by_size.pop(-(-side // stride), None):
            path = min(reversed(layers), key=lambda path: path.count("."))
            maps.append(FeatureMap(path, stride, layers[path]))
    if len(maps) < 2:
        raise UserError(
            f"name: {type(network).__name__} has fewer than two square feature maps of stride "
            f"{', '.join(map(str, STRIDES))} for pictures of {side} x {side} pixels; give a convolutional network"
        )
    return maps

"""Networks that classify every pixel, made of networks that classify photos."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torchvision.models.feature_extraction import create_feature_extractor

from headstart.output.errors import UserError, reason_of

# Pixels of the picture for one pixel of a feature map, along each axis.
STRIDES = (4, 8, 16, 32)


class FeatureMap(NamedTuple):
    """A feature map that a network computes.

    Attributes:
        layer: Path of the module whose output it is.
        stride: Pixels of the picture for one pixel of the map, along each axis.
        channels: Number of channels.
    """

    layer: str
    stride: int
    channels: int


class PixelClassifier(nn.Module):
    """A linear classifier of pixels, by a network's feature maps of several strides.

    Source: Jingdong Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition", TPAMI 2020,
    section 3 (HRNetV2). Smaller maps are interpolated bilinearly to the size of the largest, and
    all are concatenated.

    Args:
        network: A network that classifies photos; only its layers up to the maps are used.
        side: Side of the pictures in pixels.
        classes: Number of classes.

    Attributes:
        body: Returns the maps of images, by the paths of the modules that compute them.
        maps: The maps, the largest first.
        classifier: Linear, from the features of a pixel to logits.
        num_classes: Number of classes; set to 0 if the body has trained weights and the classifier has not.

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
        self.pixels = ConcatenateMaps()
        self.classifier = nn.Linear(sum(feature_map.channels for feature_map in self.maps), classes)
        self.num_classes = classes

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, `[samples, height / 4, width / 4, classes]`, the channels last for a linear classifier."""
        logits: Tensor = self.classifier(self.pixels(list(self.body(images).values())).movedim(1, -1))
        return logits


def is_pixel_classifier(names: Iterable[str]) -> bool:
    """Return whether a network is a `PixelClassifier`, by the names of its weights."""
    return all(name.startswith(("body.", "classifier.")) for name in names)


class ConcatenateMaps(nn.Module):
    """Interpolates maps to the size of the first and concatenates them."""

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        """Return the concatenated maps, `[samples, sum of channels, height, width]`."""
        first, *others = maps
        size = first.shape[-2:]
        return torch.cat([first, *(functional.interpolate(smaller, size, mode="bilinear") for smaller in others)], 1)


def describe_maps(network: nn.Module) -> dict[str, Any]:
    """Return the entry of a network's feature maps in `results.json`; empty unless the network classifies pixels."""
    if not isinstance(network, PixelClassifier):
        return {}
    return {"feature_maps": [feature_map._asdict() for feature_map in network.maps]}


@torch.no_grad()
def find_maps(network: nn.Module, side: int) -> list[FeatureMap]:
    """Find the modules that compute a network's feature maps, one for each stride.

    Args:
        network: A network that classifies photos; it is in evaluation mode.
        side: Side of the pictures in pixels.

    Returns:
        The maps, the largest first.

    Raises:
        UserError: The network has fewer than two such maps.
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
        # Modules are recorded in the order in which they end. Of those with maps of this size, the last of the
        # outermost ones is a whole stage; inner ones may be parts of a stage. In small pictures, several strides have
        # the same size, which only the first of them takes.
        if layers := channels_by_size.pop(-(-side // stride), None):
            path = min(reversed(layers), key=lambda path: path.count("."))
            maps.append(FeatureMap(path, stride, layers[path]))
    if len(maps) < 2:
        raise UserError(
            f"name: {type(network).__name__} has fewer than two square feature maps of stride "
            f"{', '.join(map(str, STRIDES))} for pictures of {side} x {side} pixels; give a convolutional network"
        )
    return maps

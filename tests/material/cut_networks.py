"""Networks that are cut before one of their modules, with weights and statistics that are all of consequence."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing

SIDE = 32
# The name of a backbone, arguments of its constructor, and where it is cut.
CUTS: list[tuple[str, dict[str, Any], str]] = [
    ("mobilenet_v2", {"width_mult": 0.35}, "features.14"),
    ("mobilenet_v2", {"width_mult": 0.35}, "features.17.conv"),
    ("resnet18", {}, "layer3.1"),
    ("resnet50", {}, "layer4"),
    ("timm/vit_tiny_patch16_224", {"img_size": SIDE}, "blocks.9"),
    ("timm/efficientnet_b0", {}, "blocks.5"),
    ("headstart.tests.material.cut_networks.Branching", {}, "late"),
]


class Branching(nn.Module):
    """A network of its own kind, whose code looks at what it is given, and which works in place."""

    num_features = 6

    def __init__(self) -> None:
        super().__init__()
        self.early = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8))
        self.late = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6), nn.Dropout(0.5))
        self.gate = nn.Parameter(torch.full((6, 1, 1), 0.5))

    def forward(self, images: Tensor, scale: float | None = None) -> Tensor:
        maps = self.late(self.early(images) * (1.0 if scale is None else scale))
        return functional.adaptive_avg_pool2d(maps * self.gate, 1).flatten(1)


def build_cut(name: str, arguments: dict[str, Any]) -> Backbone:
    """Build a backbone with random weights and statistics."""
    spec = BackboneSpec(name, "random", arguments, Preprocessing(resize=SIDE, crop=SIDE))
    backbone = build_backbone(spec.network(0))
    generator = torch.Generator().manual_seed(0)
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values, low, high in ((module.running_mean, -0.3, 0.3), (module.running_var, 0.5, 2.0)):
                assert values is not None
                nn.init.uniform_(values, low, high, generator=generator)
            nn.init.uniform_(module.weight, 0.5, 1.5, generator=generator)
            nn.init.uniform_(module.bias, -0.3, 0.3, generator=generator)
    return backbone

"""Features of timm's networks are what enters their classifier; without one linear layer, timm's own pre-logits."""

import random
from collections import defaultdict

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.folding import are_same
from headstart.modules.networks.weights import heads
from headstart.output.errors import UserError

timm = pytest.importorskip("timm")

# Of each family, so many networks are looked at, of which the smallest is compared.
LOOKED_AT, MOST_PARAMETERS = 4, 60_000_000


def choose() -> list[str]:
    """Choose a small network of each family, by a seed."""
    families, smallest = defaultdict[str, list[str]](list), list[str]()
    for name in timm.list_models():
        families[timm.models.model_entrypoint(name).__module__].append(name)
    for _, names in sorted(families.items()):
        sizes = {}
        for name in random.Random(0).sample(names, min(LOOKED_AT, len(names))):
            try:
                with torch.device("meta"):
                    sizes[name] = sum(each.numel() for each in timm.create_model(name).parameters())
            except (NotImplementedError, RuntimeError):  # its constructor computes
                continue
        smallest += [name for name in sorted(sizes, key=sizes.__getitem__)[:1] if sizes[name] < MOST_PARAMETERS]
    return smallest


def expect(name: str, images: Tensor) -> Tensor:
    """Compute what enters the one linear classifier of a network, or timm's pre-logits of another."""
    torch.manual_seed(0)
    network, entered = timm.create_model(name).eval(), list[Tensor]()
    linear = [layer for layer in heads(network).values() if isinstance(layer, nn.Linear)]
    if len(linear) != 1 and hasattr(network, "forward_head"):
        features: Tensor = network.forward_head(network.forward_features(images), pre_logits=True)
        return features
    for layer in linear:
        layer.register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    output: Tensor = network(images)
    return entered[0] if linear else output


@pytest.mark.slow
@torch.inference_mode()
def test_features_of_a_network_of_each_family() -> None:
    differ, refused, names = list[str](), dict[str, str](), choose()
    for name in names:
        try:
            backbone = build_backbone(BackboneSpec(f"timm/{name}", "random").network(seed=0))
        except UserError as error:
            refused[name] = str(error)
            continue
        photo = backbone.noise_photo()
        if not are_same(backbone(photo), expect(name, backbone.normalize(photo))):
            differ.append(name)
    assert not differ, differ
    assert [
        name for name, why in refused.items() if "no linear classifier" not in why and "centre crop" not in why
    ] == []
    assert len(names) - len(refused) > 60, refused

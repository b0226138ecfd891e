"""Changes of low rank are trained, and the pre-trained weights stay."""

import copy
from collections.abc import Callable

import pytest
import timm
import torch
from torch import nn
from torch.optim import Adam
from torchvision.models import mobilenet_v2
from torchvision.models.vision_transformer import VisionTransformer

from headstart.modules import LoRA
from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.lora import LowRankConv2d, LowRankLinear, LowRankWeight
from headstart.modules.networks.trainable_backbone import TrainableBackbone, folded
from headstart.output.errors import UserError
from headstart.tests.material.streams import begin_on, staged

RANK, ALPHA = 2, 6.0


TINY = {"img_size": 32, "embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 0}
NETWORKS: dict[str, tuple[Callable[[], nn.Module], set[type]]] = {
    "mobilenet": (lambda: mobilenet_v2(num_classes=5, width_mult=0.35), {LowRankConv2d, LowRankLinear}),
    "transformer": (lambda: VisionTransformer(32, 16, 2, 2, 24, 48, num_classes=5), {LowRankLinear}),
    "timm's transformer": (lambda: timm.create_model("vit_tiny_patch16_224", **TINY), {LowRankLinear}),
    "efficientnet": (lambda: timm.create_model("efficientnet_b0", num_classes=0), {LowRankConv2d}),
}


def begun(make: Callable[[], nn.Module], rank: int = RANK, seed: int = 0) -> tuple[LoRA, nn.Module]:
    """Return a method on a network, and a copy of the network as it was."""
    torch.manual_seed(0)
    network = make().eval()
    with torch.no_grad():
        width = network(torch.zeros(1, 3, 32, 32)).shape[1]
    method = LoRA(rank, ALPHA, lambda p: Adam(p, lr=0.01))
    method.begin(MethodStart(width, 2, range(1), max_samples=50, seed=seed, backbone=network))
    method.build_optimizers()
    return method, copy.deepcopy(network)


def layers(method: Method) -> dict[str, LowRankWeight]:
    assert method.backbone is not None
    return {name: each for name, each in method.backbone.named_modules() if isinstance(each, LowRankWeight)}


def train(method: LoRA) -> None:
    generator = torch.Generator().manual_seed(0)
    for label in (0, 1, 1):
        method.adapt(torch.randn(1, 2, 3, 32, 32, generator=generator), torch.tensor([[label, 1 - label]]))


@pytest.mark.parametrize(("make", "kinds"), NETWORKS.values(), ids=NETWORKS)
def test_of_any_network_low_ranks_and_the_head_alone_move(make: Callable[[], nn.Module], kinds: set[type]) -> None:
    method, network = begun(make)
    photos = torch.randn(3, 3, 32, 32)
    adapted = layers(method)
    assert {type(layer) for layer in adapted.values()} == kinds
    with torch.no_grad():
        assert torch.equal(method.features(photos), network(photos))
    before = {name: value.clone() for name, value in method.state_dict().items()}
    train(method)
    after = method.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    ups, downs = ({f"backbone.{name}.{part}" for name in adapted} for part in ("up", "down"))
    # The gradient of some factors in a deep random network is zero.
    assert {"weight", "bias", *ups} <= changed <= {"weight", "bias", *ups, *downs}
    assert len(changed & downs) > len(downs) / 2
    with torch.no_grad():
        original, trained = network(photos), method.features(photos)
        # The same as the network with the sums in place of its weights.
        for name, layer in adapted.items():
            change = ALPHA / RANK * (layer.up.double() @ layer.down.double())
            network.get_parameter(f"{name}.weight").add_(change.view_as(layer.pretrained).float())
        size = trained.abs().max()
        assert (trained - original).abs().max() > 1e-2 * size
        assert (trained - network(photos)).abs().max() < 1e-4 * size


def test_depthwise_grouped_wide_and_small_layers_stay() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.Conv2d(8, 8, 1, groups=8),
        nn.Conv2d(8, 8, 1, groups=2),
        nn.Conv2d(8, 8, 1, stride=2),
        nn.Conv2d(8, 3, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(3, 30),
    )
    for rank, expected in ((1, ["3", "4", "7"]), (2, ["3", "4", "7"]), (3, ["3"])):
        assert list(layers(begun(lambda: network, rank)[0])) == expected


def test_evaluations_fold_what_is_learnt() -> None:
    method, _ = begun(lambda: TrainableBackbone(NETWORKS["mobilenet"][0]().eval()))
    photos = torch.randn(2, 3, 32, 32)
    train(method)
    with torch.no_grad():
        expected = method(photos)
    with folded(method):
        torch.testing.assert_close(method(photos), expected, rtol=1e-4, atol=1e-5)


def test_a_rank_that_no_layer_has_room_for_is_refused() -> None:
    with pytest.raises(UserError, match="rank: 4 requested, but the backbone has no"):
        begin_on(LoRA(), staged())

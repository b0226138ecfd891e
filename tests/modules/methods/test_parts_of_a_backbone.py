"""Methods that train a part of the backbone: which weights move, and by how much."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.optim import SGD, Adam

from headstart.modules import (
    L2SP,
    BiasOnly,
    GradientDescent,
    GradualUnfreezing,
    HeadOnly,
    LinearProbeThenFineTune,
    NormalizationOnly,
)
from headstart.modules.method import Method
from headstart.modules.methods.gradual_unfreezing import _stages
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.output.errors import UserError
from headstart.tests.material.streams import STAGED_WIDTH, begin_on, moved, random_photos, staged, weights

RATE, ALPHA, BETA = 0.1, 0.3, 0.2
SLOW = partial(SGD, lr=RATE)
STAGES = [{"0.2.1.weight", "0.2.1.bias", "0.2.2.weight", "0.2.2.bias"}, {"0.1.0.weight", "0.1.0.bias"}]


class Attending(nn.Module):
    """Attention of torch's own, whose projections share one bias."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.last = nn.Linear(12, STAGED_WIDTH)

    def forward(self, photos: Tensor) -> Tensor:
        tokens = photos.flatten(2)
        features: Tensor = self.last(self.attention(tokens, tokens, tokens)[0].flatten(1))
        return features


def test_what_a_method_selects_alone_moves() -> None:
    biases = {"0.0.1.bias", "0.1.0.bias", "0.2.1.bias", "0.2.2.bias"}
    attended = {"attention.in_proj_bias", "attention.out_proj.bias", "last.bias"}
    normalised = {"0.0.1.weight", "0.0.1.bias", "0.2.2.weight", "0.2.2.bias"}
    cases: list[tuple[Method, Callable[[], nn.Module], set[str]]] = [
        (BiasOnly(), staged, biases),
        (BiasOnly(), Attending, attended),
        (NormalizationOnly(), staged, normalised),
        (HeadOnly(SLOW), staged, set()),
    ]
    for method, make, names in cases:
        begin_on(method, make())
        assert method.backbone is not None
        statistics = {name: value.clone() for name, value in method.backbone.named_buffers()}
        assert moved(method, 3) == names, type(method).__name__
        assert all(torch.equal(value, statistics[name]) for name, value in method.backbone.named_buffers())


def test_a_backbone_without_such_weights_is_refused() -> None:
    for method in (BiasOnly(), NormalizationOnly()):
        with pytest.raises(UserError, match="nothing to train"):
            begin_on(method, nn.Sequential(nn.Flatten(), nn.Linear(12, STAGED_WIDTH, bias=False)))


def test_normalisation_layers_of_a_library_are_known() -> None:
    for name in ("convnext_atto", "efficientnet_b0"):
        network = timm.create_model(name, num_classes=0)
        method = begin_on(NormalizationOnly(), network)
        assert method.backbone is not None
        trained = {key for key, value in method.backbone.named_parameters() if value.requires_grad}
        # Neither a linear layer nor a convolution has weights of one dimension.
        of_one_dimension = {key for key, value in network.named_parameters() if value.dim() == 1 and "weight" in key}
        assert trained == of_one_dimension | {key.replace("weight", "bias") for key in of_one_dimension}


def test_what_lies_within_a_normalisation_layer_is_not_trained() -> None:
    class NormalisationAndActivation(nn.BatchNorm2d):
        def __init__(self) -> None:
            super().__init__(3)
            self.activation = nn.PReLU()

    layer = NormalisationAndActivation()
    assert [id(parameter) for parameter in NormalizationOnly().trained(layer)] == [id(layer.weight), id(layer.bias)]


@pytest.mark.parametrize("make", [HeadOnly, lambda fast: LinearProbeThenFineTune(12, partial(SGD, lr=9), fast)])
def test_the_head_alone_learns_as_on_frozen_features(make: Callable[..., Method]) -> None:
    fast = partial(Adam, lr=1e-2)
    method, backbone = begin_on(make(fast), staged()), staged()
    frozen = begin_on(GradientDescent(fast), None)
    photos, labels = random_photos(12)
    for part in range(0, 12, 4):
        method.adapt(photos[:, part : part + 4], labels[:, part : part + 4])
        with torch.no_grad():
            features = backbone(photos[0, part : part + 4])[None]
        frozen.adapt(features, labels[:, part : part + 4])
        for name in ("weight", "bias"):
            torch.testing.assert_close(method.state_dict()[name], frozen.state_dict()[name], rtol=0, atol=1e-6)


def test_the_backbone_stays_as_it_is_where_statistics_are_trained() -> None:
    method = begin_on(HeadOnly(), TrainableBackbone(staged(), batch_norm="trained", dropout=True))
    assert method.backbone is not None
    before = {name: value.clone() for name, value in method.backbone.state_dict().items()}
    assert moved(method, 8) == set()
    assert any("running" in name for name in before)
    assert all(torch.equal(value, before[name]) for name, value in method.backbone.state_dict().items())
    assert any(module.training for module in method.backbone.modules())


@pytest.mark.parametrize(("probe_samples", "size", "probed"), [(8, 1, 8), (9, 4, 3)])
def test_a_probe_ends_after_its_samples(probe_samples: int, size: int, probed: int) -> None:
    method = begin_on(LinearProbeThenFineTune(probe_samples, SLOW), staged())
    photos, labels = random_photos(size * (probed + 2))
    states = [{name: value.clone() for name, value in method.state_dict().items()}]
    fine_tuned = begin_on(GradientDescent(SLOW), staged())
    for part, targets in zip(photos.split(size, 1), labels.split(size, 1), strict=True):
        fine_tuned.load_state_dict(states[-1])
        for each in (method, fine_tuned):
            each.adapt(part, targets)
        states.append({name: value.clone() for name, value in method.state_dict().items()})

    for step, (before, after) in enumerate(pairwise(states), start=1):
        same = {name for name in before if torch.equal(before[name], after[name])}
        assert not same & {"weight", "bias"}
        assert {name for name in before if name.startswith("backbone.") and "0.1." in name} <= same or step > probed
        assert not same & {"backbone.0.1.0.weight"} or step <= probed
    # Afterwards the whole network is trained by its own optimiser.
    for name, value in fine_tuned.state_dict().items():
        torch.testing.assert_close(states[-1][name], value, rtol=0, atol=1e-7)


def test_steps_are_those_of_the_gradient_and_the_pull() -> None:
    method = begin_on(L2SP(ALPHA, BETA, SLOW), staged())
    start = weights(method)
    photos, labels = random_photos(3)
    for index in range(3):
        plain = begin_on(GradientDescent(SLOW), staged())
        plain.load_state_dict(method.state_dict())
        before, head = weights(method), method.state_dict()["weight"].clone()
        for each in (method, plain):
            each.adapt(photos[:, index : index + 1], labels[:, index : index + 1])
        for name, value in weights(method).items():
            torch.testing.assert_close(value, weights(plain)[name] - RATE * ALPHA * (before[name] - start[name]))
        torch.testing.assert_close(method.state_dict()["weight"], plain.state_dict()["weight"] - RATE * BETA * head)
    assert any(not torch.equal(value, start[name]) for name, value in weights(method).items())


@pytest.mark.parametrize(("samples", "stages"), [(4, 0), (5, 1), (8, 1), (9, 2), (12, 2), (13, 3), (30, 3)])
def test_stages_have_their_turn_from_the_last_to_the_first(samples: int, stages: int) -> None:
    method = begin_on(GradualUnfreezing(4, SLOW), staged())
    every = set(weights(method))
    assert moved(method, samples) == (every if stages == 3 else set().union(*STAGES[:stages]))


def test_stages_of_networks() -> None:
    with torch.device("meta"):
        models = torchvision.models
        transformer, mobile, convnext = models.vit_b_16(), models.mobilenet_v3_small(), models.convnext_tiny()
        transformer.heads = mobile.classifier[3] = nn.Identity()
        networks = [models.mobilenet_v2().features, transformer, mobile, convnext.features]
        # A ResNet with its classifier.
        networks += [models.resnet18(), timm.create_model("efficientnet_b0", num_classes=0)]
        network = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    assert [len(_stages(each)) for each in networks] == [19, 14, 14, 8, 7, 2 + 7 + 2]
    assert _stages(network) == [network.patch_embed, *network.blocks, network.norm]


def test_layers_outside_of_the_stages_are_trained_last() -> None:
    network = staged()
    network.register_parameter("aside", nn.Parameter(torch.ones(())))
    method = begin_on(GradualUnfreezing(1), network)
    for samples, is_trained in ((3, False), (1, True)):
        moved(method, samples)
        assert method.backbone is not None
        assert method.backbone.get_parameter("aside").requires_grad == is_trained

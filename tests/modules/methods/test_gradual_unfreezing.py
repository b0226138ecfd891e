"""One more stage of the backbone is trained after every so many samples."""

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.optim import SGD

from headstart.modules import GradualUnfreezing
from headstart.modules.methods.gradual_unfreezing import _stages
from headstart.tests.material.networks_to_train import begin, moved, staged, weights

STAGES = [{"0.2.1.weight", "0.2.1.bias", "0.2.2.weight", "0.2.2.bias"}, {"0.1.0.weight", "0.1.0.bias"}]


@pytest.mark.parametrize(("samples", "stages"), [(4, 0), (5, 1), (8, 1), (9, 2), (12, 2), (13, 3), (30, 3)])
def test_stages_have_their_turn_from_the_last_to_the_first(samples: int, stages: int) -> None:
    method = begin(GradualUnfreezing(4, lambda p: SGD(p, lr=0.1)), staged())
    every = set(weights(method))
    expected = every if stages == 3 else set().union(*STAGES[:stages])
    assert moved(method, samples) == expected


def test_stages_of_networks() -> None:
    assert len(_stages(torchvision.models.mobilenet_v2().features)) == 19
    assert len(_stages(torchvision.models.resnet18())) == 7  # with the classifier
    with torch.device("meta"):
        transformer, mobile = torchvision.models.vit_b_16(), torchvision.models.mobilenet_v3_small()
        transformer.heads = mobile.classifier[3] = nn.Identity()
        assert len(_stages(transformer)) == 14
        assert len(_stages(mobile)) == 14
        assert len(_stages(torchvision.models.convnext_tiny().features)) == 8
        assert len(_stages(timm.create_model("efficientnet_b0", num_classes=0))) == 2 + 7 + 2
        network = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    assert _stages(network) == [network.patch_embed, *network.blocks, network.norm]


def test_layers_outside_of_the_stages_are_trained_last() -> None:
    network = staged()
    network.register_parameter("aside", nn.Parameter(torch.ones(())))
    method = begin(GradualUnfreezing(1), network)
    moved(method, 3)
    assert method.backbone is not None
    assert not method.backbone.get_parameter("aside").requires_grad
    moved(method, 1)
    assert method.backbone.get_parameter("aside").requires_grad

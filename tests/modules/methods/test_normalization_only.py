"""Scale and shift of normalisation layers are trained, and nothing else of the backbone."""

import pytest
import timm
import torch
from torch import nn

from headstart.modules import NormalizationOnly
from headstart.output.errors import UserError
from headstart.tests.material.networks_to_train import WIDTH, begin, moved, staged


def test_normalisation_layers_alone_move() -> None:
    method = begin(NormalizationOnly(), staged())
    assert method.backbone is not None
    statistics = {name: value.clone() for name, value in method.backbone.named_buffers()}
    assert moved(method, 3) == {"0.0.1.weight", "0.0.1.bias", "0.2.2.weight", "0.2.2.bias"}
    assert all(torch.equal(value, statistics[name]) for name, value in method.backbone.named_buffers())


@pytest.mark.parametrize("name", ["resnet18", "convnext_atto", "efficientnet_b0"])
def test_layers_of_a_library_are_known(name: str) -> None:
    network = timm.create_model(name, num_classes=0)
    method = begin(NormalizationOnly(), network)
    assert method.backbone is not None
    trained = {key for key, value in method.backbone.named_parameters() if value.requires_grad}
    of_one_dimension = {key for key, value in network.named_parameters() if value.dim() == 1 and "weight" in key}
    # Neither a linear layer nor a convolution has weights of one dimension.
    assert {key for key in trained if "weight" in key} == of_one_dimension
    assert trained == of_one_dimension | {key.replace("weight", "bias") for key in of_one_dimension}


def test_a_backbone_without_such_layers_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to train"):
        begin(NormalizationOnly(), nn.Sequential(nn.Flatten(), nn.Linear(12, WIDTH)))

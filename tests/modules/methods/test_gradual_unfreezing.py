"""One more stage of the backbone is trained after every so many samples."""

from __future__ import annotations

import pytest
import torchvision
from torch.optim import SGD

from modules import GradualUnfreezing
from modules.methods.gradual_unfreezing import _stages
from tests.material.networks_to_train import begin, moved, staged, weights

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

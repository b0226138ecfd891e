"""Biases are trained, and nothing else of the backbone."""

from __future__ import annotations

import pytest
from torch import nn

from modules import BiasOnly
from output.errors import UserError
from tests.material.networks_to_train import WIDTH, begin, moved, staged


def test_biases_alone_move() -> None:
    assert moved(begin(BiasOnly(), staged()), 3) == {
        "0.0.1.bias",
        "0.1.0.bias",
        "0.2.1.bias",
        "0.2.2.bias",
    }


def test_a_backbone_without_biases_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to train"):
        begin(BiasOnly(), nn.Sequential(nn.Flatten(), nn.Linear(12, WIDTH, bias=False)))

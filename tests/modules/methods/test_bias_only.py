"""Biases are trained, and nothing else of the backbone."""

import pytest
from torch import Tensor, nn

from headstart.modules import BiasOnly
from headstart.output.errors import UserError
from headstart.tests.material.networks_to_train import WIDTH, begin, moved, staged


def test_biases_alone_move() -> None:
    assert moved(begin(BiasOnly(), staged()), 3) == {
        "0.0.1.bias",
        "0.1.0.bias",
        "0.2.1.bias",
        "0.2.2.bias",
    }


class Attending(nn.Module):
    """Attention of torch's own, whose projections share one bias."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.last = nn.Linear(12, WIDTH)

    def forward(self, photos: Tensor) -> Tensor:
        tokens = photos.flatten(2)
        features: Tensor = self.last(self.attention(tokens, tokens, tokens)[0].flatten(1))
        return features


def test_the_bias_of_attention_moves() -> None:
    names = {"attention.in_proj_bias", "attention.out_proj.bias", "last.bias"}
    assert moved(begin(BiasOnly(), Attending()), 3) == names


def test_a_backbone_without_biases_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to train"):
        begin(BiasOnly(), nn.Sequential(nn.Flatten(), nn.Linear(12, WIDTH, bias=False)))

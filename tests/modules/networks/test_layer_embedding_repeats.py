"""A network that draws random numbers in its forward pass is refused, and one that mixes the photos of a batch."""

from collections.abc import Callable
from itertools import count

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError

PLAIN = Preprocessing(8, 8, (0, 0, 0), (1, 1, 1))


class Give(nn.Module):
    """A network that computes a given function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.stem = nn.Flatten()
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(self.stem(images))


def embedding(function: Callable[[Tensor], Tensor], layer: str = "logits", width: int | None = None) -> LayerEmbedding:
    return LayerEmbedding("someone", Give(function).eval(), [Tap(layer, None, width)], PLAIN)


passes = count()


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: functional.dropout(rows, 0.1, training=True),
        lambda rows: rows[:, next(passes) % 2 :],
        lambda rows: functional.batch_norm(rows, None, None, training=True),
    ],
)
def test_other_values_in_a_second_pass(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UserError) as caught:
        embedding(function)
    assert str(caught.value).startswith("model 'someone': layer 'logits' returns other values in a second pass")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: 0 * rows,
        lambda rows: rows + 1e-5 * torch.randn_like(rows),
        lambda rows: functional.dropout(rows, 0.5, training=False),
        lambda rows: rows / rows.norm(dim=1, keepdim=True),
    ],
)
def test_same_values_in_a_second_pass(function: Callable[[Tensor], Tensor]) -> None:
    state = torch.get_rng_state()
    assert embedding(function).widths == [192]
    assert torch.equal(torch.get_rng_state(), state)


def test_only_the_layer_that_is_taken_counts() -> None:
    model = embedding(lambda rows: functional.dropout(rows, 0.5, training=True), "stem", 192)
    photos = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(model(photos), photos.flatten(1) / 255)

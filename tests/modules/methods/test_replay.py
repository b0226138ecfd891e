"""Replay against plain gradient descent on the batches that it should form."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from modules.method import Start, draw_head
from modules.methods.replay import Replay
from output.errors import UserError
from tests.material.streams import draw_samples, feed


def test_steps_take_the_batch_and_all_of_a_small_memory() -> None:
    inputs, labels = draw_samples(orderings=2, samples=6, features=5)
    method = Replay(lambda p: torch.optim.SGD(p, lr=0.1), replay_size=100, steps=2)
    feed(method, inputs, labels, batch=2)
    for ordering in range(2):
        head, bias = (x.requires_grad_() for x in draw_head(5, 2, seed=0, ordering=ordering))
        optimizer = torch.optim.SGD([head, bias], lr=0.1)
        for seen in (2, 2, 4, 4, 6, 6):
            optimizer.zero_grad()
            logits = inputs[ordering, :seen] @ head + bias
            functional.cross_entropy(logits, labels[ordering, :seen]).backward()
            optimizer.step()
        torch.testing.assert_close(method.weight[ordering], head)
        torch.testing.assert_close(method.bias[ordering], bias)


def test_draws_as_many_as_asked() -> None:
    sizes = []

    class Counting(Replay):
        def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
            sizes.append(labels.shape[1])
            return super().loss(logits, labels)

    feed(Counting(replay_size=3, steps=1), torch.randn(2, 10, 4), torch.randint(2, (2, 10)), batch=2)
    assert sizes == [2, 4, 5, 5, 5]


def test_trainable_backbone_is_refused() -> None:
    start = Start(4, 2, range(1), max_samples=9, seed=0, backbone=nn.Flatten())
    with pytest.raises(UserError, match="frozen features"):
        Replay().begin(start)

"""Replay against plain gradient descent on the batches that it should form."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import sample_head
from headstart.modules.methods.replay import Replay
from headstart.tests.material.streams import (
    WIDTH,
    adapt,
    batches,
    feed,
    make_start,
    random_photos,
    random_samples,
    tiny_backbone,
)


class Scaled(nn.Module):
    """Takes bytes, as a backbone does."""

    def forward(self, photos: Tensor) -> Tensor:
        assert photos.dtype == torch.uint8
        return photos / 255


def test_steps_take_the_batch_and_all_of_a_small_memory() -> None:
    inputs, labels = random_samples(orderings=2, samples=6, features=5)
    method = Replay(lambda p: torch.optim.SGD(p, lr=0.1), replay_size=100, steps=2)
    feed(method, inputs, labels, batch=2)
    for ordering in range(2):
        head, bias = (x.requires_grad_() for x in sample_head(5, 2, seed=0, ordering=ordering))
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


def test_a_trained_backbone_sees_the_memory_anew() -> None:
    photos, labels = random_photos(6)
    pixels = (60 * photos + 90).to(torch.uint8)
    backbone = nn.Sequential(Scaled(), tiny_backbone())
    method = Replay(lambda p: torch.optim.SGD(p, lr=0.1), replay_size=100, steps=2)
    method.begin(replace(make_start(photos), backbone=backbone))
    method.build_optimizers()
    for batch in batches(pixels, labels, 2):
        adapt(method, batch)
    assert method.memory.matrix.dtype == torch.uint8

    head, bias = (x.requires_grad_() for x in sample_head(WIDTH, 2, seed=0, ordering=0))
    optimizer = torch.optim.SGD([head, bias, *backbone.parameters()], lr=0.1)
    for seen in (2, 2, 4, 4, 6, 6):
        optimizer.zero_grad()
        functional.cross_entropy(backbone(pixels[0, :seen]) @ head + bias, labels[0, :seen]).backward()
        optimizer.step()
    torch.testing.assert_close(method.weight[0], head)
    assert method.backbone is not None
    for ours, theirs in zip(method.backbone.parameters(), backbone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)

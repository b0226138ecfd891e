"""Streams of random samples, and what every method must hold to on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from modules.method import Method, Start, draw_head


def feed_method(method: Method, inputs: Tensor, labels: Tensor, batch: int = 1, classes: int = 2) -> Method:
    orderings, samples, features = inputs.shape
    head, bias = draw_head(features, classes, seed=0)
    generator = torch.Generator().manual_seed(1)
    source_head, source_bias = torch.randn(20, features, generator=generator), torch.randn(20, generator=generator)
    method.begin(Start(head, bias, orderings, samples, seed=0, source_head=source_head, source_bias=source_bias))
    method.build_optimizers()
    for part, part_labels in zip(inputs.split(batch, 1), labels.split(batch, 1), strict=True):
        method.adapt(part, part_labels)
    return method


def draw_samples(orderings: int, samples: int, features: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(orderings + samples)
    centres = 0.5 * torch.randn(classes, features, generator=generator)
    labels = torch.randint(classes, (orderings, samples), generator=generator)
    return torch.rand(orderings, samples, features, generator=generator) + centres[labels], labels


@pytest.fixture
def feed() -> Callable[..., Method]:
    """Begin a method and feed it a stream in batches."""
    return feed_method


@pytest.fixture
def draw() -> Callable[..., tuple[Tensor, Tensor]]:
    """Draw features `[orderings, samples, features]` around one centre per class, and labels."""
    return draw_samples


@pytest.fixture
def assert_alone_as_among_many() -> Callable[[Callable[[], Method]], None]:
    """Check that an ordering alone gives the logits that it gives among others, with a smaller last batch."""

    def check(make: Callable[[], Method]) -> None:
        inputs, labels = draw_samples(orderings=4, samples=20, features=12, classes=3)
        validation = inputs[0]
        many = feed_method(make(), inputs, labels, batch=3, classes=3)(validation)
        alone = feed_method(make(), inputs[2:3], labels[2:3], batch=3, classes=3)(validation)
        torch.testing.assert_close(alone[0], many[2], rtol=1e-3, atol=1e-4)

    return check


@pytest.fixture
def assert_batch_size_is_irrelevant() -> Callable[[Callable[[], Method]], None]:
    """Check that the same samples give the same logits in batches of 1 and of 8."""

    def check(make: Callable[[], Method]) -> None:
        inputs, labels = draw_samples(orderings=3, samples=20, features=15, classes=3)
        ones = feed_method(make(), inputs, labels, batch=1, classes=3)(inputs[0])
        eights = feed_method(make(), inputs, labels, batch=8, classes=3)(inputs[0])
        torch.testing.assert_close(ones, eights, rtol=1e-3, atol=1e-4)

    return check

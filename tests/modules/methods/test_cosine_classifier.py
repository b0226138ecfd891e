"""The imprinted cosine classifier against imprinting and training one ordering by hand."""

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import functional

from headstart.modules.methods.cosine_classifier import CosineClassifier
from headstart.tests.material.streams import feed, random_samples

CLASSES = 125


def still(parameters: Iterable[Any]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def test_first_samples_imprint_their_mean_direction() -> None:
    inputs, labels = random_samples(orderings=3, samples=30, features=10, classes=3)
    logits = feed(CosineClassifier(still, imprint_samples=4, scale=7.0), inputs, labels, classes=3)(inputs[0])
    for ordering in range(3):
        unit = functional.normalize(inputs[ordering], dim=-1)
        means = torch.stack([unit[labels[ordering] == c][:4].mean(0) for c in range(3)])
        expected = 7 * functional.cosine_similarity(inputs[0][:, None], means, dim=-1)
        torch.testing.assert_close(logits[ordering], expected)


def test_a_step_descends_on_the_cross_entropy_of_scaled_cosines() -> None:
    inputs, labels = torch.randn(1, 2, 6), torch.tensor([[0, 1]])
    method = CosineClassifier(lambda p: torch.optim.SGD(p, lr=0.1), imprint_samples=1)
    feed(method, inputs, labels, batch=2)
    weight = functional.normalize(inputs[0], dim=-1).requires_grad_()
    scale = torch.tensor(10.0, requires_grad=True)
    cosines = functional.normalize(inputs[0], dim=-1) @ functional.normalize(weight, dim=-1).mT
    functional.cross_entropy(scale * cosines, labels[0]).backward()
    assert weight.grad is not None
    assert scale.grad is not None
    torch.testing.assert_close(method.weight[0].mT, weight - 0.1 * weight.grad)
    torch.testing.assert_close(method.scale.flatten(), (scale - 0.1 * scale.grad)[None])


def test_training_does_not_lose_what_many_classes_imprinted() -> None:
    """Samples of 125 classes come one by one, two of each; as of real networks, all have nearly the same direction."""
    generator = torch.Generator().manual_seed(0)
    centres = 4 + torch.randn(CLASSES, 1280, generator=generator)
    labels = torch.cat([torch.randperm(CLASSES, generator=generator) for _ in range(2)])[None]
    samples = centres[labels] + 2 * torch.randn(1, 2 * CLASSES, 1280, generator=generator)
    points = centres + 2 * torch.randn(CLASSES, 1280, generator=generator)
    right = []
    for method in (CosineClassifier(still), CosineClassifier()):
        predicted = feed(method, samples, labels, classes=CLASSES)(points).argmax(-1)
        right.append(int((predicted == torch.arange(CLASSES)).sum()))
    imprinted, trained = right
    assert imprinted > 0.9 * CLASSES
    assert trained >= imprinted - 2

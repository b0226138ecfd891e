"""Shrunken class means against a loop over classes and against the means that they estimate."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.modules.methods.shrunken_class_mean import ROUNDS, ShrunkenClassMean
from headstart.tests.material.streams import feed, random_samples

Floats = NDArray[np.float64]


def shrink(samples: Floats, labels: NDArray[np.int64]) -> dict[int, Floats]:
    classes = sorted(set(labels.tolist()))
    groups = {c: samples[labels == c] for c in classes}
    scatter = sum(((group - group.mean(0)) ** 2).sum() for group in groups.values())
    scale = scatter / (len(samples) - len(classes))
    means = {c: group.mean(0) for c, group in groups.items()}
    variance = {c: scale / len(group) for c, group in groups.items()}
    weights = dict.fromkeys(classes, 1.0)
    for _ in range(ROUNDS):
        total = sum(weights.values())
        common = sum(weights[c] * means[c] for c in classes) / total
        factor = len(classes) / (len(classes) - 1)
        moments = {c: factor * ((means[c] - common) ** 2).sum() - variance[c] for c in classes}
        spread = max(sum(weights[c] * moments[c] for c in classes) / total, scale / len(samples))
        weights = {c: 1 / (variance[c] + spread) for c in classes}
    return {c: means[c] + variance[c] / (variance[c] + spread) * (common - means[c]) for c in classes}


def test_equals_the_formula_class_by_class() -> None:
    inputs, labels = random_samples(orderings=3, samples=20, features=8, classes=4)
    validation = torch.rand(30, 8)
    logits = feed(ShrunkenClassMean(), inputs, labels, batch=6, classes=4)(validation)
    points = functional.normalize(validation, dim=-1).double().numpy()
    for ordering in range(3):
        unit = functional.normalize(inputs[ordering], dim=-1).double().numpy()
        for label, mean in shrink(unit, labels[ordering].numpy()).items():
            expected = points @ mean - mean @ mean / 2
            np.testing.assert_allclose(logits[ordering, :, label].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_of_one_sample_each_nothing_is_shrunk() -> None:
    inputs, validation = functional.normalize(torch.randn(1, 3, 9), dim=-1), torch.randn(20, 9)
    labels = torch.tensor([[2, 0, 1]])
    unit = functional.normalize(validation, dim=-1)
    plain = feed(NearestClassMean(), inputs, labels, classes=3)(unit)
    torch.testing.assert_close(feed(ShrunkenClassMean(), inputs, labels, classes=3)(validation), plain)


def test_a_rare_class_is_not_at_a_disadvantage() -> None:
    generator = torch.Generator().manual_seed(0)
    centres = 0.15 * torch.eye(2, 400)

    def draw(labels: torch.Tensor) -> torch.Tensor:
        noise = 400**-0.5 * torch.randn(*labels.shape, 400, generator=generator)
        return functional.normalize(centres[labels] + noise, dim=-1)

    labels = torch.tensor([[0] * 30 + [1] * 2]).repeat(50, 1)
    inputs, rare = draw(labels), draw(torch.ones(500, dtype=torch.int64))
    results = [
        (feed(method, inputs, labels)(rare).argmax(-1) == 1).float().mean()
        for method in (NearestClassMean(), ShrunkenClassMean())
    ]
    assert results[0] < 0.1
    assert results[1] > 0.5

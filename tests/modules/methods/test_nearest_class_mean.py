"""Nearest class mean against distances to means computed sample by sample."""

import torch

from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.tests.material.streams import feed, random_samples


def test_predicts_the_nearest_mean() -> None:
    inputs, labels = random_samples(orderings=3, samples=30, features=10, classes=3)
    validation = torch.randn(50, 10)
    predicted = feed(NearestClassMean(), inputs, labels, batch=7, classes=3)(validation).argmax(-1)
    for ordering in range(3):
        means = torch.stack([inputs[ordering, labels[ordering] == c].mean(0) for c in range(3)])
        assert torch.equal(predicted[ordering], torch.cdist(validation, means).argmin(-1))

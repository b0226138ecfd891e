"""Predictions are the sum of discriminant analysis of the frozen network and the trained side."""

from dataclasses import replace

import torch
from scipy.stats import multivariate_normal
from torch import Tensor
from torch.nn import functional
from torch.optim import SGD

from headstart.modules import SideTuning, StreamingLDA
from headstart.tests.material.streams import (
    adapt,
    batches,
    begin,
    make_start,
    random_photos,
    tail,
    tiny_backbone,
)

CLASSES = 3


def likelihoods(features: Tensor, labels: Tensor, samples: Tensor) -> Tensor:
    """Return the log-likelihoods of the classes, up to a term that all share, by SciPy."""
    features, samples = (functional.normalize(each, dim=-1).double() for each in (features, samples))
    means = torch.stack([features[labels == label].mean(0) for label in range(CLASSES)])
    scatter = (features - means[labels]).mT @ (features - means[labels])
    covariance = (scatter + torch.eye(features.shape[1])) / (1 + len(labels))
    densities = [torch.from_numpy(multivariate_normal.logpdf(samples, mean, covariance)) for mean in means]
    return torch.stack(densities, -1)


@torch.no_grad()
def test_without_steps_the_base_alone_predicts() -> None:
    photos, labels = random_photos(40, CLASSES)
    method = begin(SideTuning(optimizer=lambda p: SGD(p, lr=0.0)), make_start(photos, CLASSES))
    with torch.enable_grad():
        for batch in batches(photos, labels, 4):
            adapt(method, batch)
    features = tiny_backbone()(photos[0])
    logits = method(photos[0])[0]
    torch.testing.assert_close(
        logits.log_softmax(-1), likelihoods(features, labels[0], features).log_softmax(-1).float(), rtol=1e-4, atol=1e-4
    )
    alone = begin(StreamingLDA(), make_start(features[None], CLASSES))
    adapt(alone, (features[None], labels, torch.arange(40)[None]))
    assert torch.equal(logits.argmax(-1), alone(features)[0].argmax(-1))


def test_steps_are_taken_with_the_base_before_it_learns() -> None:
    photos, labels = random_photos(12, CLASSES)
    method = begin(SideTuning(optimizer=lambda p: SGD(p, lr=0.3)), make_start(photos, CLASSES))
    side = tiny_backbone()
    head = torch.zeros(6, CLASSES, requires_grad=True)
    bias = torch.zeros(CLASSES, requires_grad=True)
    optimizer = SGD([*side.parameters(), head, bias], lr=0.3)
    base = begin(StreamingLDA(), make_start(torch.zeros(1, 12, 6), CLASSES))
    for count, (images, target, indices) in enumerate(batches(photos, labels, 3)):
        with torch.no_grad():
            features = tiny_backbone()(images[0])[None]
            of_base = (1 + 3 * count) * base(features)[0]
        logits = of_base + side(images[0]) @ head + bias
        # A class without a sample has no probability.
        loss = functional.cross_entropy(torch.where(of_base.isinf(), torch.zeros(()), logits), target[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        adapt(base, (features, target, indices))
        adapt(method, (images, target, indices))
    assert head.abs().max() > 1e-3
    torch.testing.assert_close(method.get_parameter("weight")[0], head)
    assert method.backbone is not None
    for ours, theirs in zip(method.backbone.parameters(), side.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_frozen_features_are_those_of_an_evaluation_whatever_is_trained() -> None:
    photos, labels = random_photos(8)
    backbone = tail()
    with backbone.folded():
        expected = backbone(photos[0])
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    method = SideTuning(optimizer=lambda p: SGD(p, lr=0.3))
    begin(method, replace(make_start(photos), backbone=backbone))
    for batch in batches(photos, labels, 4):
        adapt(method, batch)
    assert torch.equal(method._frozen_features(photos[0]), expected)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    torch.testing.assert_close(
        method.base.sums[0], torch.stack([functional.normalize(expected)[labels[0] == k].sum(0) for k in range(2)])
    )

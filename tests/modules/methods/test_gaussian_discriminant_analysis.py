"""Gaussian discriminant analysis against the paper's formula with an inverse, and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods.gaussian_discriminant_analysis import GaussianDiscriminantAnalysis
from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples


def published_scores(inputs: Tensor, labels: Tensor, validation: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return the scores of equations 3 and 4, and the factor of their precision that all scores share."""
    features, points = (functional.normalize(x.double(), dim=-1) for x in (inputs, validation))
    means = torch.stack([features[labels == c].mean(0) for c in range(classes)])
    covariance = (features - means[labels]).T.cov()
    width, trace = len(covariance), covariance.trace()
    precision = width * torch.linalg.inv((len(features) - 1) * covariance + trace * torch.eye(width).double())
    scores: Tensor = points @ precision @ means.mT - 0.5 * ((means @ precision) * means).sum(-1)
    return scores, width / trace


@pytest.mark.parametrize(("samples", "features", "batch"), [(30, 100, 8), (30, 30, 1), (31, 30, 1), (200, 20, 8)])
def test_equals_the_published_formula(samples: int, features: int, batch: int) -> None:
    inputs, labels = random_samples(orderings=3, samples=samples, features=features, classes=3)
    validation = torch.rand(40, features)
    logits = feed(GaussianDiscriminantAnalysis(), inputs, labels, batch, classes=3)(validation).double()
    for ordering in range(3):
        expected, factor = published_scores(inputs[ordering], labels[ordering], validation, 3)
        torch.testing.assert_close(factor * logits[ordering], expected, rtol=1e-3, atol=1e-2)


def test_of_many_samples_predicts_as_scikit_learn() -> None:
    inputs, labels = random_samples(orderings=1, samples=2000, features=6, classes=3)
    validation = torch.rand(200, 6)
    predicted = feed(GaussianDiscriminantAnalysis(), inputs, labels, batch=100, classes=3)(validation)[0].argmax(-1)
    oracle = LinearDiscriminantAnalysis(solver="lsqr")
    oracle.fit(functional.normalize(inputs[0], dim=-1).double().numpy(), labels[0].numpy())
    scores = oracle.decision_function(functional.normalize(validation, dim=-1).double().numpy())
    expected = (scores - np.log(oracle.priors_)).argmax(-1)
    assert (predicted.numpy() == expected).mean() >= 0.99


def test_of_one_sample_each_is_nearest_class_mean() -> None:
    inputs, labels = functional.normalize(torch.randn(1, 3, 9), dim=-1), torch.tensor([[2, 0, 1]])
    points = functional.normalize(torch.randn(20, 9), dim=-1)
    plain = feed(NearestClassMean(), inputs, labels, classes=3)(points)
    torch.testing.assert_close(feed(GaussianDiscriminantAnalysis(), inputs, labels, classes=3)(points), plain)


def test_keeps_the_smaller_of_the_two_spaces() -> None:
    inputs, labels = random_samples(orderings=2, samples=40, features=16)
    method = begin(GaussianDiscriminantAnalysis(), make_start(inputs))
    sizes = []
    for part in batches(inputs, labels, 4):
        adapt(method, part)
        sizes.append(max(buffer.numel() for buffer in method.buffers()))
    assert max(sizes) == 2 * 16 * 16

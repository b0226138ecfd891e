"""Streaming LDA against the covariance formula and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods.streaming_lda import StreamingLDA
from headstart.tests.material.streams import feed, random_samples

SHRINKAGE = 0.5


def direct_scores(inputs: Tensor, labels: Tensor, validation: Tensor, classes: int) -> Tensor:
    features, points = (functional.normalize(x.double(), dim=-1) for x in (inputs, validation))
    means = torch.stack([features[labels == c].mean(0) for c in range(classes)])
    residuals = features - means[labels]
    share = SHRINKAGE / (SHRINKAGE + len(features))
    covariance = residuals.mT @ residuals / len(features)
    precision: Tensor = torch.linalg.inv((1 - share) * covariance + share * torch.eye(features.shape[-1]).double())
    return points @ precision @ means.mT - 0.5 * ((means @ precision) * means).sum(-1)


@pytest.mark.parametrize(("samples", "features", "batch"), [(30, 100, 1), (30, 20, 8), (200, 20, 8)])
def test_equals_the_shrunk_covariance(samples: int, features: int, batch: int) -> None:
    inputs, labels = random_samples(orderings=3, samples=samples, features=features, classes=3)
    validation = torch.rand(40, features)
    logits = feed(StreamingLDA(SHRINKAGE), inputs, labels, batch, classes=3)(validation).double()
    for ordering in range(3):
        expected = direct_scores(inputs[ordering], labels[ordering], validation, 3)
        # The method's precision lacks the factor shrinkage + samples.
        actual = logits[ordering] * (SHRINKAGE + samples)
        torch.testing.assert_close(actual - actual[:, :1], expected - expected[:, :1], rtol=1e-3, atol=1e-2)


def test_without_shrinkage_predicts_as_scikit_learn() -> None:
    inputs, labels = random_samples(orderings=1, samples=300, features=10, classes=3)
    validation = torch.rand(200, 10)
    predicted = feed(StreamingLDA(1e-3), inputs, labels, batch=10, classes=3)(validation)[0].argmax(-1)
    oracle = LinearDiscriminantAnalysis(solver="lsqr")
    oracle.fit(functional.normalize(inputs[0], dim=-1).double().numpy(), labels[0].numpy())
    scores = oracle.decision_function(functional.normalize(validation, dim=-1).double().numpy())
    expected = (scores - np.log(oracle.priors_)).argmax(-1)
    assert (predicted.numpy() == expected).mean() >= 0.99

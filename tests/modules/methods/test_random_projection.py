"""Ridge regression on random features against NumPy's solve in float64, and what the projection depends on."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.modules.methods.random_projection import RandomProjection
from headstart.tests.material.streams import begin, feed, make_start, random_samples

RIDGE = 0.2


def test_equals_ridge_regression_on_the_random_features() -> None:
    inputs, labels = random_samples(orderings=3, samples=40, features=12, classes=3)
    validation = torch.rand(20, 12)
    method = RandomProjection(RIDGE, projections=30)
    logits = feed(method, inputs, labels, batch=7, classes=3)(validation)
    projection = method.projection.double().numpy()

    def project(samples: torch.Tensor) -> NDArray[np.float64]:
        features = np.maximum(samples.double().numpy() @ projection, 0)
        scaled: NDArray[np.float64] = features / np.linalg.norm(features, axis=-1, keepdims=True)
        return scaled

    for ordering in range(3):
        features, targets = project(inputs[ordering]), np.eye(3)[labels[ordering].numpy()]
        weight = np.linalg.solve(features.T @ features + RIDGE * np.eye(30), features.T @ targets)
        np.testing.assert_allclose(logits[ordering].numpy(), project(validation) @ weight, rtol=1e-3, atol=1e-4)


def test_projection_is_standard_normal_and_follows_from_the_seed() -> None:
    inputs, _ = random_samples(orderings=2, samples=5, features=40)
    start = make_start(inputs)
    drawn = []
    for each in (start, replace(start, ordering_numbers=[7]), replace(start, seed=1)):
        method = begin(RandomProjection(projections=500), each)
        assert isinstance(method, RandomProjection)
        drawn.append(method.projection)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert abs(drawn[0].mean()) < 0.03
    assert abs(drawn[0].std() - 1) < 0.03

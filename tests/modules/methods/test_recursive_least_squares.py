"""The ridge recursion against direct solves in float64."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods.recursive_least_squares import RecursiveLeastSquares
from headstart.tests.material.streams import feed, random_samples

RIDGE = 0.2


def direct_weight(inputs: Tensor, labels: Tensor, classes: int) -> Tensor:
    features = functional.normalize(inputs.double(), dim=-1)
    targets = functional.one_hot(labels, classes).double()
    inverted = features.mT @ features + RIDGE * torch.eye(inputs.shape[-1]).double()
    weight: Tensor = torch.linalg.solve(inverted, features.mT @ targets)
    return weight


@pytest.mark.parametrize(("samples", "batch"), [(1, 1), (12, 5), (13, 1), (60, 20)])
def test_equals_a_direct_solve(samples: int, batch: int) -> None:
    inputs, labels = random_samples(orderings=3, samples=samples, features=12, classes=3)
    method = RecursiveLeastSquares(RIDGE)
    feed(method, inputs, labels, batch, classes=3)
    torch.testing.assert_close(method.weight.double(), direct_weight(inputs, labels, 3), rtol=1e-3, atol=2e-5)


def test_stays_exact_over_many_updates() -> None:
    inputs, labels = random_samples(orderings=2, samples=500, features=192)
    method = RecursiveLeastSquares(RIDGE)
    feed(method, inputs, labels, batch=5)
    torch.testing.assert_close(method.weight.double(), direct_weight(inputs, labels, 2), rtol=1e-3, atol=2e-5)


def test_keeps_the_smaller_of_the_two_spaces() -> None:
    method = RecursiveLeastSquares(RIDGE)
    feed(method, *random_samples(orderings=2, samples=5, features=64))
    assert max(buffer.numel() for buffer in method.buffers()) == 2 * 5 * 64

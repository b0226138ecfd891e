"""Kernel ridge regression against scikit-learn's."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from sklearn.kernel_ridge import KernelRidge as Oracle
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods import kernel_ridge
from headstart.modules.methods.kernel_ridge import FOR_WIDTH, KernelRidge
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples

RIDGE = 0.2


def expected_scores(inputs: Tensor, labels: Tensor, validation: Tensor, classes: int) -> Tensor:
    samples, points = (functional.normalize(x.double(), dim=-1).numpy() for x in (inputs, validation))
    # The median of an even number of distances is the lower of the two in the middle in torch.
    width = np.quantile(pdist(samples[:FOR_WIDTH]), 0.5, method="lower")
    oracle = Oracle(alpha=RIDGE, kernel="rbf", gamma=1 / (2 * width**2))
    targets = functional.one_hot(labels, classes).numpy()
    return torch.from_numpy(oracle.fit(samples, targets).predict(points))


@pytest.mark.parametrize(("samples", "features", "batch"), [(12, 40, 5), (90, 7, 1), (90, 7, 40)])
def test_predicts_as_scikit_learn(samples: int, features: int, batch: int) -> None:
    inputs, labels = random_samples(orderings=3, samples=samples, features=features, classes=3)
    validation = torch.rand(25, features)
    logits = feed(KernelRidge(RIDGE), inputs, labels, batch, classes=3)(validation).double()
    for ordering in range(3):
        expected = expected_scores(inputs[ordering], labels[ordering], validation, 3)
        seen = labels[ordering].unique()
        torch.testing.assert_close(logits[ordering][:, seen], expected[:, seen], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kept", [0, 4 * 3 * 30 * 10, 2**28], ids=["none", "of one chunk", "all"])
def test_products_that_are_kept_change_nothing(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_ridge, "LARGEST_CACHE", kept)
    inputs, labels = random_samples(orderings=3, samples=30, features=7)
    chunks = torch.rand(20, 7).split(10)
    method, without = begin(KernelRidge(), make_start(inputs)), replace(make_start(inputs), samples=None)
    other = begin(KernelRidge(), without)
    for part in batches(inputs, labels, 7):
        for each in (method, other):
            adapt(each, part)
        for chunk in chunks:
            torch.testing.assert_close(method(chunk), other(chunk))
    assert isinstance(method, KernelRidge)
    assert sum(4 * each.numel() for each in method.cached.values()) == min(kept, 2 * 4 * 90 * 10)

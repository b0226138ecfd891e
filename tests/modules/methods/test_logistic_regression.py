"""Refitted logistic regression against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression as Oracle

from headstart.modules.methods import samples_seen
from headstart.modules.methods.logistic_regression import LogisticRegression
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("samples", "features"), [(30, 60), (80, 12)])
@pytest.mark.parametrize("c", [0.1, 1.0])
def test_gives_the_coefficients_of_scikit_learn(classes: int, samples: int, features: int, c: float) -> None:
    inputs, labels = random_samples(orderings=3, samples=samples, features=features, classes=classes)
    method = LogisticRegression(c)
    feed(method, inputs, labels, batch=4, classes=classes)
    for ordering in range(3):
        oracle = Oracle(C=c, tol=1e-8, max_iter=10_000)
        oracle.fit(inputs[ordering].double().numpy(), labels[ordering].numpy())
        weight = method.weight[ordering].mT
        expected = torch.from_numpy(oracle.coef_).float()
        actual = weight[1:] - weight[:1] if classes == 2 else weight
        torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-3)
        probabilities = method(inputs[ordering])[ordering].softmax(-1)
        np.testing.assert_allclose(probabilities, oracle.predict_proba(inputs[ordering].numpy()), atol=1e-3)


@pytest.mark.parametrize("features", [4, 60], ids=["through the samples", "through the Gram matrix"])
def test_groups_of_orderings_are_fitted_alike(features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, labels = random_samples(orderings=5, samples=30, features=features)
    logits = []
    for room in (10**9, 1):
        monkeypatch.setattr(samples_seen, "GATHERED", room)
        logits.append(feed(LogisticRegression(), inputs, labels, batch=4)(inputs[0]))
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-4)


def test_memory_follows_what_was_seen() -> None:
    inputs, labels = random_samples(orderings=2, samples=20, features=60)
    method = begin(LogisticRegression(), replace(make_start(inputs), max_samples=500))
    for part in batches(inputs, labels, 1):
        adapt(method, part)
    assert max(buffer.numel() for buffer in method.buffers()) <= 2 * 32 * 32


def test_classes_may_come_late() -> None:
    inputs, labels = torch.randn(1, 9, 4), torch.tensor([[1, 1, 1, 1, 0, 1, 0, 1, 2]])
    one = feed(LogisticRegression(), inputs[:, :3], labels[:, :3], classes=3)(torch.randn(40, 4))
    assert set(one.argmax(-1).flatten().tolist()) == {1}
    two = feed(LogisticRegression(), inputs[:, :8], labels[:, :8], classes=3)(torch.randn(40, 4))
    assert 2 not in two.argmax(-1)
    three = LogisticRegression()
    feed(three, inputs, labels, classes=3)
    oracle = Oracle(tol=1e-8, max_iter=10_000).fit(inputs[0].double().numpy(), labels[0].numpy())
    torch.testing.assert_close(three.weight[0].mT, torch.from_numpy(oracle.coef_).float(), rtol=1e-2, atol=1e-3)


def test_the_same_sample_with_different_labels_gets_their_shares() -> None:
    inputs, _ = random_samples(orderings=1, samples=30, features=12)
    labels = torch.tensor([0, 1, 2, 2, 2, 0] * 5)[None]
    method = feed(LogisticRegression(tolerance=1e-6), inputs[:, :1].expand_as(inputs), labels, classes=3)
    shares = method(inputs[0, :1])[0, 0].softmax(-1)
    torch.testing.assert_close(shares, torch.tensor([2 / 6, 1 / 6, 3 / 6]), rtol=0, atol=2e-3)

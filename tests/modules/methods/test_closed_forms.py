"""Closed-form methods against their formulas in float64, scikit-learn and loops, one ordering at a time."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge as Oracle
from torch import Tensor
from torch.nn import functional

from headstart.modules import (
    GaussianDiscriminantAnalysis,
    KernelRidge,
    NearestClassMean,
    RandomProjection,
    RecursiveLeastSquares,
    ShrunkenClassMean,
    StreamingLDA,
)
from headstart.modules.method import Method
from headstart.modules.methods import kernel_ridge
from headstart.modules.methods.kernel_ridge import FOR_WIDTH
from headstart.modules.methods.samples_seen import SamplesSeen
from headstart.modules.methods.shrunken_class_mean import ROUNDS
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples

CLASSES, RIDGE = 3, 0.2


def class_means(features: Tensor, labels: Tensor) -> Tensor:
    """Return the means of the classes; NaN for a class without a sample."""
    return torch.stack([features[labels == label].mean(0) for label in range(CLASSES)])


def score(points: Tensor, means: Tensor, precision: Tensor) -> Tensor:
    scores: Tensor = points @ precision @ means.mT - 0.5 * ((means @ precision) * means).sum(-1)
    return scores


def nearest_means(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    # Unlike the distances, scores lack a term that all classes share.
    distances = torch.cdist(points, class_means(features, labels)).square()
    return 0.5 * (points.square().sum(-1, keepdim=True) - distances)


def shrunken_means(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    samples, each = functional.normalize(features, dim=-1).numpy(), labels.numpy()
    classes = sorted(set(each.tolist()))
    groups = {label: samples[each == label] for label in classes}
    means = {label: group.mean(0) for label, group in groups.items()}
    scatter = sum(((group - means[label]) ** 2).sum() for label, group in groups.items())
    scale = scatter / (len(samples) - len(classes))
    variance = {label: scale / len(group) for label, group in groups.items()}
    weights = dict.fromkeys(classes, 1.0)
    for _ in range(ROUNDS):
        total = sum(weights.values())
        common = sum(weights[label] * means[label] for label in classes) / total
        factor = len(classes) / (len(classes) - 1)
        moments = {label: factor * ((means[label] - common) ** 2).sum() - variance[label] for label in classes}
        spread = max(sum(weights[label] * moments[label] for label in classes) / total, scale / len(samples))
        weights = {label: 1 / (variance[label] + spread) for label in classes}
    shrunk = [means[label] + variance[label] / (variance[label] + spread) * (common - means[label]) for label in means]
    return score(
        functional.normalize(points, dim=-1), torch.from_numpy(np.stack(shrunk)), torch.eye(len(common)).double()
    )


def published_scores(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    """Return the scores of equations 3 and 4 of the paper, without the factor that all share."""
    features, points = (functional.normalize(each, dim=-1) for each in (features, points))
    means = class_means(features, labels)
    covariance = (features - means[labels]).T.cov()
    identity = torch.eye(len(covariance)).double()
    inverse = torch.linalg.inv((len(features) - 1) * covariance + covariance.trace() * identity)
    return score(points, means, covariance.trace() * inverse)


def shrunk_covariance_scores(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    features, points = (functional.normalize(each, dim=-1) for each in (features, points))
    means, shrinkage, count = class_means(features, labels), method.ridge, len(features)
    residuals, share = features - means[labels], shrinkage / (shrinkage + len(features))
    covariance = (1 - share) * residuals.mT @ residuals / count + share * torch.eye(features.shape[-1]).double()
    # The method's precision lacks this factor.
    scores: Tensor = score(points, means, torch.linalg.inv(covariance)) / (shrinkage + count)
    return scores


def ridge_scores(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    if isinstance(method, RandomProjection):
        features, points = ((each @ method.projection.double()).relu() for each in (features, points))
    features, points = (functional.normalize(each, dim=-1) for each in (features, points))
    targets = functional.one_hot(labels, CLASSES).double()
    inverted = features.mT @ features + RIDGE * torch.eye(features.shape[-1]).double()
    scores: Tensor = points @ torch.linalg.solve(inverted, features.mT @ targets)
    return scores


def kernel_scores(method: Any, features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    samples, others = (functional.normalize(each, dim=-1).numpy() for each in (features, points))
    # The median of an even number of distances is the lower of the two in the middle in torch.
    width = np.quantile(pdist(samples[:FOR_WIDTH]), 0.5, method="lower")
    oracle = Oracle(alpha=RIDGE, kernel="rbf", gamma=1 / (2 * width**2))
    return torch.from_numpy(oracle.fit(samples, functional.one_hot(labels, CLASSES).numpy()).predict(others))


# Samples, features and samples in a batch: fewer samples than features, as many, and more.
Sizes = list[tuple[int, int, int]]
CASES: list[tuple[Callable[[], Method], Callable[..., Tensor], Sizes, float]] = [
    (NearestClassMean, nearest_means, [(30, 10, 7)], 1e-5),
    (ShrunkenClassMean, shrunken_means, [(20, 8, 6)], 1e-5),
    (GaussianDiscriminantAnalysis, published_scores, [(30, 100, 8), (30, 30, 1), (31, 30, 1), (200, 20, 8)], 1e-4),
    (lambda: StreamingLDA(0.5), shrunk_covariance_scores, [(30, 100, 1), (30, 20, 8), (200, 20, 8)], 1e-4),
    (
        lambda: RecursiveLeastSquares(RIDGE),
        ridge_scores,
        [(1, 12, 1), (12, 12, 5), (13, 12, 1), (60, 12, 20), (500, 192, 5)],
        2e-5,
    ),
    (lambda: RandomProjection(RIDGE, projections=30), ridge_scores, [(40, 12, 7)], 1e-4),
    (lambda: KernelRidge(RIDGE), kernel_scores, [(12, 40, 5), (90, 7, 1), (90, 7, 40)], 1e-4),
]


def test_scores_are_those_of_the_formulas() -> None:
    for make, oracle, sizes, tolerance in CASES:
        for samples, features, batch in sizes:
            inputs, labels = random_samples(3, samples, features, CLASSES)
            points = torch.rand(40, features)
            method = feed(make(), inputs, labels, batch, CLASSES)
            for ordering, logits in enumerate(method(points).double()):
                expected = oracle(method, inputs[ordering].double(), labels[ordering], points.double())
                seen, name = labels[ordering].unique(), f"{type(method).__name__}, {samples} x {features}"
                expected = expected if expected.shape[1] == len(seen) else expected[:, seen]
                torch.testing.assert_close(logits[:, seen], expected, rtol=1e-3, atol=tolerance, msg=name)


@pytest.mark.parametrize(
    ("method", "samples", "features"), [(GaussianDiscriminantAnalysis(), 2000, 6), (StreamingLDA(1e-3), 300, 10)]
)
def test_discriminants_of_many_samples_predict_as_scikit_learn(method: Method, samples: int, features: int) -> None:
    inputs, labels = random_samples(1, samples, features, CLASSES)
    points = torch.rand(200, features)
    predicted = feed(method, inputs, labels, 10, CLASSES)(points)[0].argmax(-1)
    rows, points = (functional.normalize(each, dim=-1).double() for each in (inputs[0], points))
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(rows.numpy(), labels[0].numpy())
    expected = (oracle.decision_function(points.numpy()) - np.log(oracle.priors_)).argmax(-1)
    assert (predicted.numpy() == expected).mean() >= 0.99


@pytest.mark.parametrize("method", [GaussianDiscriminantAnalysis(), ShrunkenClassMean()])
def test_of_one_sample_each_others_are_nearest_class_mean(method: Method) -> None:
    inputs, points = (functional.normalize(torch.randn(*shape, 9), dim=-1) for shape in ((1, 3), (20,)))
    labels = torch.tensor([[2, 0, 1]])
    plain = feed(NearestClassMean(), inputs, labels, classes=3)(points)
    torch.testing.assert_close(feed(method, inputs, labels, classes=3)(points), plain)


def test_the_smaller_of_the_two_spaces_is_kept() -> None:
    method = begin(GaussianDiscriminantAnalysis(), make_start(random_samples(2, 40, 16)[0]))
    sizes = []
    for part in batches(*random_samples(2, 40, 16), 4):
        adapt(method, part)
        sizes.append(max(buffer.numel() for buffer in method.buffers()))
    assert max(sizes) == 2 * 16 * 16
    few = feed(RecursiveLeastSquares(), *random_samples(2, 5, 64))
    assert max(buffer.numel() for buffer in few.buffers()) == 2 * 5 * 64


def test_a_projection_is_standard_normal_and_follows_from_the_seed() -> None:
    start = make_start(random_samples(2, 5, 40)[0])
    methods = (RandomProjection(projections=500) for _ in range(3))
    starts = start, replace(start, ordering_numbers=[7]), replace(start, seed=1)
    first, again, other = (begin(*pair).projection for pair in zip(methods, starts, strict=True))
    assert torch.equal(first, again)  # type: ignore[arg-type]
    assert not torch.equal(first, other)  # type: ignore[arg-type]
    assert abs(first.mean()) < 0.03  # type: ignore[operator]
    assert abs(first.std() - 1) < 0.03  # type: ignore[operator]


@pytest.mark.parametrize("kept", [4 * 3 * 30 * 10, 2**28], ids=["of one chunk", "all"])
def test_kernel_products_that_are_kept_change_nothing(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_ridge, "LARGEST_CACHE", kept)
    inputs, labels = random_samples(orderings=3, samples=30, features=7)
    chunks = torch.rand(20, 7).split(10)
    method, other = KernelRidge(), KernelRidge()
    begin(method, make_start(inputs))
    begin(other, replace(make_start(inputs), samples=None))
    for part in batches(inputs, labels, 7):
        for each in (method, other):
            adapt(each, part)
        for chunk in chunks:
            torch.testing.assert_close(method(chunk), other(chunk))
    assert sum(4 * each.numel() for each in method.cached.values()) == min(kept, 2 * 4 * 90 * 10)


@pytest.mark.parametrize("shared", [True, False], ids=["shared matrix", "features of its own"])
@pytest.mark.parametrize("seen_before", [0, 3])
def test_copies_share_what_was_seen_and_go_on_apart(shared: bool, seen_before: int) -> None:
    features, labels = random_samples(orderings=2, samples=8, features=4)
    indices = torch.arange(16).view(2, 8)
    start = make_start(features)
    seen = SamplesSeen(start if shared else replace(start, samples=None))
    for sample in range(seen_before):
        seen.append(features[:, [sample]], labels[:, [sample]], indices[:, [sample]])
    other = deepcopy(seen)
    assert other.matrix.data_ptr() == seen.matrix.data_ptr()
    before = list(range(seen_before))
    for numbers, one, sample in ((before.copy(), other, 7), (before.copy(), seen, 6)):
        for number in (sample, sample - 2):
            numbers.append(number)
            one.append(features[:, [number]], labels[:, [number]], indices[:, [number]])
        assert torch.equal(one.gather(slice(None)), features[:, numbers])
        assert torch.equal(one.labels, labels[:, numbers])
    assert torch.equal(other.gather(slice(None)), features[:, [*before, 7, 5]])

"""Left-out predictions: those of plain fits to the other samples, for every method."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.evaluation.classifiers.heads import Head, head_of
from headstart.evaluation.classifiers.left_out import (
    CANDIDATES,
    Labelled,
    curve_sizes,
    find_candidates,
    fit_all,
    learning_curve,
    prepare,
    rotate,
)
from headstart.metrics.few_labels.folds import proportional_orderings, stratified_folds


def make_samples(per_class: int, width: int, classes: int = 3) -> Labelled:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(classes).repeat_interleave(per_class)
    centres = torch.randn(classes, width, generator=generator)
    features = (centres[labels] + torch.randn(len(labels), width, generator=generator)).relu()
    head = torch.randn(7, width, generator=generator)
    return Labelled(features, labels, classes, head, torch.randn(7, generator=generator))


def without(samples: Labelled, indices: Tensor) -> Labelled:
    kept = torch.ones(len(samples.labels), dtype=torch.bool)
    kept[indices] = False
    return replace(samples, features=samples.features[kept], labels=samples.labels[kept])


@pytest.mark.parametrize("width", [12, 60])
def test_folds_are_predicted_as_by_fits_to_the_others(width: int) -> None:
    samples = make_samples(6, width)
    folds = stratified_folds(samples.labels.numpy(), 4, 2, seed=0)
    for name in CANDIDATES:
        found = prepare(name, samples).predict_folds(folds)
        for split, assigned in enumerate(folds):
            for fold in range(4):
                left_out = torch.from_numpy(np.flatnonzero(assigned == fold))
                with torch.no_grad():
                    expected = fit_all(name, without(samples, left_out))(samples.features[left_out])[0]
                spread = expected.max() - expected.min()
                assert (found[split, left_out] - expected).abs().max() < 2e-3 * spread, name


def test_accuracy_of_several_folds_left_out_is_that_of_fits_to_the_others() -> None:
    samples = make_samples(6, 12)
    folds = stratified_folds(samples.labels.numpy(), 4, 2, seed=0)
    folds[:, 0] = -1
    assert prepare("ShrunkenClassMean", samples).predict_folds(folds)[:, 0].isnan().all()
    right = []
    for assigned in folds:
        for runs in ([0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]):
            left_out = torch.from_numpy(np.flatnonzero(np.isin(assigned, runs)))
            with torch.no_grad():
                predicted = fit_all("ShrunkenClassMean", without(samples, left_out))(samples.features[left_out])[0]
            right.append(predicted.argmax(1) == samples.labels[left_out])
    expected = float(torch.cat(right).double().mean())
    assert prepare("ShrunkenClassMean", samples).accuracy(folds, 3) == pytest.approx(expected)


def test_rotated_vectors_have_the_same_products() -> None:
    vectors = torch.randn(5, 40)
    rotated = rotate(vectors)
    assert rotated.shape == (5, 5)
    torch.testing.assert_close(rotated @ rotated.mT, vectors @ vectors.mT, rtol=1e-4, atol=1e-4)
    assert rotate(rotated) is rotated


def test_heads_predict_as_their_methods() -> None:
    samples = make_samples(5, 10)
    others = torch.randn(30, 10).relu()
    for name in CANDIDATES:
        method = fit_all(name, samples)
        with torch.no_grad():
            expected, found = method(others)[0], head_of(method)(others)
        assert (expected - found).abs().max() < 1e-3 * (expected.max() - expected.min()), name


def test_a_common_offset_leaves_the_predictions_as_they_are() -> None:
    """Features are multiples of 1 / 64, which float32 represents next to 100,000, too."""
    samples = make_samples(30, 10)
    centred = replace(samples, features=((samples.features - samples.features.mean(0)) * 64).round() / 64)
    assert samples.without_offset() is samples
    moved = replace(centred, features=centred.features + 1e5, source_bias=torch.zeros(7)).without_offset()
    assert moved.offset is not None
    source = moved.features @ samples.source_head.mT + moved.source_bias  # type: ignore[union-attr, operator]
    torch.testing.assert_close(source, (moved.features + 1e5) @ samples.source_head.mT, rtol=1e-5, atol=1)  # type: ignore[union-attr]

    moved = replace(moved, source_bias=samples.source_bias)
    for name in CANDIDATES:
        head = head_of(fit_all(name, moved), moved.offset)
        # As a file stores it.
        head = Head(head.representation, **head.state_dict())
        expected = head_of(fit_all(name, centred))(centred.features)
        found = head(centred.features + 1e5)
        assert (expected - found).abs().max() < 0.02 * (expected.max() - expected.min()), name
        assert (expected.argmax(-1) == found.argmax(-1)).all(), name


def test_learning_curve_is_that_of_a_loop() -> None:
    samples = make_samples(5, 10)
    labels = samples.labels.numpy()
    orders = proportional_orderings(labels, 4, seed=0)
    sizes = curve_sizes(15, 3)
    assert sizes == [3, 6, 9, 12]
    curve = learning_curve(prepare("StreamingLDA", samples), orders, sizes)
    for size, end, values in zip(sizes, [6, 9, 12, 15], curve, strict=True):
        for order, value in zip(orders, values, strict=True):
            method = fit_all("StreamingLDA", without(samples, torch.from_numpy(order[size:])))
            following = order[size:end]
            with torch.no_grad():
                predicted = method(samples.features[following])[0].argmax(-1).numpy()
            assert value == (predicted == labels[following]).mean()


def test_the_only_sample_of_a_class_is_not_scored() -> None:
    few, more = make_samples(8, 10), make_samples(8, 10)
    alone = Labelled(torch.cat([few.features, 20 * torch.ones(1, 10)]), torch.cat([few.labels, torch.tensor([3])]), 4)
    order = np.arange(len(alone.labels))[None]
    for given, size in ((alone, 12), (more, 12)):
        [values] = learning_curve(prepare("StreamingLDA", given), order[:, : len(given.labels)], [size])
        predicted = (
            prepare("StreamingLDA", given).predict(torch.arange(12)[None], torch.arange(12, 24)[None]).argmax(-1)
        )
        assert values == (predicted[0] == few.labels[12:24]).double().mean()


def test_methods_that_need_a_source_head_or_few_samples_are_left_out() -> None:
    samples = make_samples(5, 10)
    assert tuple(find_candidates(samples)) == CANDIDATES
    headless = Labelled(samples.features, samples.labels, 3)
    assert tuple(find_candidates(headless)) == CANDIDATES[:-1]
    many = Labelled(torch.zeros(1001, 2), torch.zeros(1001, dtype=torch.int64), 3)
    assert "LogisticRegression" not in find_candidates(many)

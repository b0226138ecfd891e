"""What samples of known classes say: the accuracy that is found, wrong labels, and forecasts of more labels."""

import numpy as np
import pytest
import torch

from headstart.evaluation.classifiers.answer import doubtful_indices
from headstart.evaluation.classifiers.assessment import assess, forecast_rows, try_left_out
from headstart.evaluation.classifiers.left_out import Labelled, fit_all
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy, tied_with
from headstart.metrics.forecast.curve_forecast import forecast_curve


def make_samples(sizes: tuple[int, ...], distance: float) -> Labelled:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centres = distance * torch.eye(len(sizes), 20)
    return Labelled(centres[labels] + torch.randn(len(labels), 20, generator=generator), labels, len(sizes))


def test_labels_that_were_flipped_are_found() -> None:
    generator, found, flipped, wrong = np.random.default_rng(0), 0, 0, 0
    for draw in range(5):
        samples = make_samples((20,) * 5, distance=5)
        features = samples.features + 0.3 * torch.from_numpy(generator.standard_normal((100, 20))).float()
        changed = generator.choice(100, 5, replace=False)
        labels = samples.labels.clone()
        labels[changed] = (labels[changed] + torch.from_numpy(generator.integers(1, 5, 5))) % 5
        noted = {*doubtful_indices(labels.numpy(), assess([Labelled(features, labels, 5)], 3, seed=draw))}
        found, flipped, wrong = found + len(noted & {*changed}), flipped + 5, wrong + len(noted - {*changed})
    assert found >= 0.8 * flipped
    assert wrong <= 0.2 * flipped


def test_many_classes_of_five_labels_are_expected_as_they_turn_out() -> None:
    generator, gaps, general = np.random.default_rng(0), [], []
    for draw in range(3):
        labels = np.arange(100).repeat(25)
        features = generator.normal(0, 0.4, (100, 128))[labels] + generator.normal(size=(len(labels), 128))
        learnt = np.tile(np.arange(25) < 5, 100)
        parts = [
            Labelled(torch.from_numpy(features[rows]).float(), torch.from_numpy(labels[rows]), 100)
            for rows in (learnt, ~learnt)
        ]
        found = try_left_out(parts[:1], seed=draw)
        with torch.no_grad():
            predicted = fit_all(found.best[1].name, parts[0])(parts[1].features)[0].argmax(1)
        truth = float((predicted == parts[1].labels).double().mean())
        gaps.append(found.expected.estimate - truth)
        general.append(1 - (1 - found.expected.uncorrected) * 0.8**0.25 - truth)
    assert abs(np.mean(gaps)) < 0.03 < -np.mean(general)


def test_the_only_sample_of_a_class_has_no_probabilities() -> None:
    found = assess([make_samples((6, 6, 1), distance=8)], orderings=3, seed=0)
    assert np.flatnonzero(np.isnan(found.probabilities()).any(1)).tolist() == [12]
    assert found.chosen.confusion()[2].sum() == 0


def test_the_better_backbone_is_chosen() -> None:
    weak, strong = make_samples((20, 20), distance=0), make_samples((20, 20), distance=9)
    found = assess([weak, strong], orderings=3, seed=0)
    assert found.best[0] == 1
    tied = tied_with(found.correct, found.expected.chosen)
    assert not any(flag for flag, (backbone, _) in zip(tied, found.methods, strict=True) if backbone == 0)


SIZES = [3, 6, 9, 12, 18, 24]
CURVE = [np.array([0.4, 0.5, 0.6]) + 0.03 * index for index in range(len(SIZES))]


def forecast(low: float, high: float) -> list[tuple[float, float, float]]:
    expected = ExpectedAccuracy(0, 0.7, low, high, 0.7, 0.0)
    rows = forecast_rows(SIZES, CURVE, expected, 30, 3, "streaming_lda")
    assert [(row["labels"], row["level"]) for row in rows] == [(60, 0.8), (120, 0.8), (240, 0.8)]
    return [(row["interval"][0], row["estimate"], row["interval"][1]) for row in rows]


def test_a_certain_accuracy_is_continued_as_a_curve_is() -> None:
    accuracies = np.column_stack([*CURVE, np.full(3, 0.7)])
    found = forecast_curve(np.array([*SIZES, 30]), accuracies, 3, "streaming_lda")
    for times, (low, estimate, high) in zip((2, 4, 8), forecast(0.7, 0.7), strict=True):
        expected, intervals = found.at(times)
        assert (low, estimate, high) == pytest.approx((intervals[0.8][0], expected, intervals[0.8][1]))


def test_a_curve_whose_last_points_do_not_rise_is_not_forecast() -> None:
    generator = np.random.default_rng(0)
    flat = [np.clip(0.9 + generator.normal(0, 0.01, 3), 0, 1) for _ in SIZES]
    expected = ExpectedAccuracy(0, 0.8, 0.7, 0.9, 0.8, 0.0)
    assert forecast_rows(SIZES, flat, expected, 30, 3, "streaming_lda") == []
    assert forecast_rows([], [], expected, 3, 3, "streaming_lda") == []
    # It has risen at first, and no longer does.
    assert forecast_rows(SIZES, [np.full(3, 0.1), *flat[1:]], expected, 30, 3, "streaming_lda") == []


def test_an_uncertain_accuracy_makes_a_forecast_uncertain() -> None:
    certain, uncertain, worse = forecast(0.7, 0.7), forecast(0.5, 0.85), forecast(0.5, 0.7)
    for row, other, below in zip(certain, uncertain, worse, strict=True):
        assert other[0] < row[0] < row[1] == other[1] < row[2] < other[2]
        # Only the side that is uncertain is wider, and by less than both reaches together.
        assert below == pytest.approx((other[0], row[1], row[2]))
        assert other[0] > row[0] - 0.2

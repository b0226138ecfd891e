"""Folds, calibration and expected accuracy: plain counts, sums and loops, closed forms, and simulated predictions."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import beta

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.calibration import (
    calibration_error,
    cross_entropies,
    fit_temperature,
    probabilities,
    sharpen,
)
from headstart.metrics.few_labels.expected_accuracy import (
    BOOTSTRAPS,
    bootstrap_corrected,
    expected_accuracy,
    merits,
    remaining_error,
    tied_with,
)
from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds


def test_folds_leave_out_one_of_each_of_equal_classes_and_of_others_differ_by_one() -> None:
    labels = np.repeat([0, 1, 2], 5)
    assert count_folds(labels) == 5
    for split in stratified_folds(labels, 5, 4, seed=0):
        assert all(sorted(labels[split == fold]) == [0, 1, 2] for fold in range(5))
    labels = np.array([0] * 23 + [1] * 4 + [2] * 11)
    split = stratified_folds(labels, 10, 1, seed=3)[0]
    assert np.ptp(np.bincount(split)) <= 1
    for label in range(3):
        assert np.ptp(np.bincount(split[labels == label], minlength=10)) <= 1


def test_the_only_sample_of_a_class_is_never_left_out() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    splits = stratified_folds(labels, count_folds(labels), 3, seed=0)
    assert (splits[:, 5] == KEPT).all()
    assert (splits[:, :5] != KEPT).all()


def test_splits_do_not_depend_on_their_number() -> None:
    labels = np.repeat([0, 1], 7)
    assert (stratified_folds(labels, 7, 5, 1)[:2] == stratified_folds(labels, 7, 2, 1)).all()
    assert (proportional_orderings(labels, 5, 1)[:2] == proportional_orderings(labels, 2, 1)).all()


@pytest.mark.parametrize("sizes", [(6, 6, 6), (2, 9), (1, 5, 30)])
def test_beginnings_of_orderings_have_their_share_of_every_class(sizes: tuple[int, ...]) -> None:
    labels = np.repeat(range(len(sizes)), sizes)
    for order in proportional_orderings(labels, 6, seed=0):
        assert sorted(order) == list(range(len(labels)))
        for length in range(1, len(labels) + 1):
            counts = np.bincount(labels[order[:length]], minlength=len(sizes))
            assert (abs(counts - length * np.array(sizes) / len(labels)) <= 1 + 1e-9).all()
    if len(set(sizes)) == 1:
        blocks = labels[proportional_orderings(labels, 6, seed=0)].reshape(6, -1, len(sizes))
        assert (np.sort(blocks) == np.arange(len(sizes))).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_temperature_is_recovered(scale: float) -> None:
    generator = np.random.default_rng(0)
    logits = 2 * generator.standard_normal((20_000, 3))
    labels = (softmax(logits, axis=1).cumsum(1) < generator.random((20_000, 1))).sum(1)
    assert fit_temperature(scale * logits, labels) == pytest.approx(scale, rel=0.05)


def test_right_predictions_alone_are_not_certain() -> None:
    logits, labels = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0), np.repeat([0, 1], 5)
    predicted = probabilities(logits, fit_temperature(logits, labels))
    # Half an error in eleven.
    assert predicted.max(1) == pytest.approx(np.full(10, 1 - 0.5 / 11), abs=1e-3)
    again = fit_temperature(np.tile(logits, (4, 1)), np.tile(labels, 4), repeats=4)
    assert again == pytest.approx(fit_temperature(logits, labels), rel=1e-3)


@pytest.mark.parametrize(
    ("classes", "per_class", "scale"), [(2, 30, 1), (6, 10, 1), (10, 20, 3), (40, 3, 2), (100, 3, 4)]
)
def test_probabilities_hold_for_few_samples_of_many_classes(classes: int, per_class: int, scale: float) -> None:
    generator = np.random.default_rng(classes)

    def draw(count: int) -> tuple[Floats, Indices]:
        logits = scale * generator.standard_normal((count, classes))
        return logits, (softmax(logits, axis=1).cumsum(1) < generator.random((count, 1))).sum(1)

    errors, ratios = [], []
    for _ in range(20):
        labelled, held_out = draw(classes * per_class), draw(2_000)
        temperature = fit_temperature(*labelled)
        predicted = probabilities(held_out[0], temperature)
        errors.append(calibration_error(predicted.max(1), predicted.argmax(1) == held_out[1]))
        best = min(cross_entropies(*held_out, value).mean() for value in np.geomspace(0.3, 3, 41))
        ratios.append(cross_entropies(*held_out, temperature).mean() / best)
    assert np.mean(errors) < 0.05
    assert np.mean(ratios) < 1.02


def test_sharpened_probabilities_have_the_gain_unless_they_are_certain() -> None:
    logits = np.random.default_rng(0).standard_normal((50, 4))
    before = probabilities(logits, 2.0).max(1).mean()
    assert probabilities(logits, sharpen(logits, 2.0, 0.2)).max(1).mean() == pytest.approx(before + 0.2)
    assert sharpen(logits, 2.0, 0.0) == 2.0
    assert sharpen(logits, 2.0, 1 - before) == 2.0


def test_calibration_error_is_the_sum_over_bins() -> None:
    confidences = np.array([0.6] * 10 + [0.9] * 10)
    correct = np.array([True] * 5 + [False] * 5 + [True] * 10)
    assert calibration_error(confidences, correct) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert calibration_error(np.array([0.75] * 4), np.array([True, True, True, False])) == pytest.approx(0)


def choose_in_a_loop(merit: Floats) -> int:
    margins = [0.0]
    for other in merit[1:]:
        difference = other - merit[0]
        margins.append(difference.mean() - difference.std() / (len(difference) - 1) ** 0.5)
    return int(np.argmax(margins))


def test_correction_is_that_of_a_plain_loop() -> None:
    generator = np.random.default_rng(0)
    correct = (generator.random((4, 30)) < 0.7).astype(float)
    merit = merits(correct, generator.random((4, 30)))
    drawn = np.random.default_rng((5, 2)).multinomial(30, np.full(30, 1 / 30), size=BOOTSTRAPS)
    values = []
    for counts in drawn:
        sample = np.repeat(np.arange(30), counts)
        best = choose_in_a_loop(merit[:, sample])
        values.append(correct[best, counts == 0].mean())
    assert bootstrap_corrected(correct, merit, seed=5) == pytest.approx(np.mean(values))


def test_one_method_has_the_posterior_of_a_share() -> None:
    correct = np.array([[1.0] * 16 + [0.0] * 4])
    result = expected_accuracy(correct, np.zeros_like(correct), 1.0)
    assert result.estimate == result.uncorrected == 0.8
    assert (result.low, result.high) == pytest.approx(beta(17, 5).ppf([0.025, 0.975]))
    result = expected_accuracy(correct, np.zeros_like(correct), 0.8, 0.9)
    assert (result.estimate, result.gain) == pytest.approx((1 - 0.2 * 0.9, 0.2 * 0.1))


def test_log_odds_are_followed_where_samples_are_many_and_otherwise_errors_fall_as_elsewhere() -> None:
    def accuracy(share: float) -> float:
        return float(1 / (1 + np.exp(0.4 - 1.3 * np.log(share))))

    left = remaining_error(accuracy(1 / 3), accuracy(2 / 3), (1 / 3, 2 / 3), 10**9)
    assert 1 - (1 - accuracy(2 / 3)) * left == pytest.approx(accuracy(1.0))
    # With two folds, nothing is measured.
    for right in (0.02, 0.3, 0.9):
        assert remaining_error(right, right, (0.5, 0.5), 40) == pytest.approx(0.5**0.25)
    assert remaining_error(0.8, 0.6, (0.4, 0.9), 10**6) == 1.0


def test_the_first_method_is_kept_unless_another_is_more_than_a_standard_error_better() -> None:
    correct = np.zeros((2, 100))
    # The differences of the second sum to 4 and to 20; their standard error is about 0.04 for both.
    correct[1, :10], correct[0, 10:16] = 1, 1
    assert expected_accuracy(correct, np.zeros_like(correct), 1.0).chosen == 0
    correct[1, 16:26] = 1
    assert expected_accuracy(correct, np.zeros_like(correct), 1.0).chosen == 1


def test_cross_entropy_decides_between_equal_accuracies_alone() -> None:
    correct = np.array([[1.0, 0, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]])
    losses = np.array([[0.9] * 4, [0.1] * 4, [5.0] * 4])
    assert expected_accuracy(correct[:2], losses[:2], 1.0).chosen == 1
    assert expected_accuracy(correct[:2], losses[:2] * 0, 1.0).chosen == 0


def test_methods_are_told_apart_by_many_samples() -> None:
    generator = np.random.default_rng(3)
    correct = np.stack([generator.random(400) < share for share in (0.9, 0.89, 0.6)]).astype(float)
    assert tied_with(correct, 0) == [True, True, False]
    assert tied_with(correct[:, :6], 0)[:2] == [True, True]

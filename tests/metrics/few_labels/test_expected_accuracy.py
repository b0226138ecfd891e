"""Expected accuracy: a plain loop over bootstraps, closed forms, and the coverage of simulated choices."""

import numpy as np
import pytest
from scipy.stats import beta

from headstart.metrics.arrays import Floats
from headstart.metrics.few_labels.expected_accuracy import (
    BOOTSTRAPS,
    bootstrap_corrected,
    expected_accuracy,
    merits,
    remaining_error,
    tied_with,
)


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


def test_choice_among_equal_methods_is_no_longer_optimistic() -> None:
    generator = np.random.default_rng(1)
    plain, corrected = [], []
    for _ in range(60):
        correct = (generator.random((8, 20)) < 0.6).astype(float)
        found = expected_accuracy(correct, np.zeros_like(correct), 1.0)
        plain.append(found.uncorrected)
        corrected.append(found.estimate)
    assert np.mean(plain) > 0.68
    assert abs(np.mean(corrected) - 0.6) < 0.03


def test_one_method_has_the_posterior_of_a_share() -> None:
    correct = np.array([[1.0] * 16 + [0.0] * 4])
    found = expected_accuracy(correct, np.zeros_like(correct), 1.0)
    assert found.estimate == found.uncorrected == 0.8
    assert (found.low, found.high) == pytest.approx(beta(17, 5).ppf([0.025, 0.975]))


def test_interval_of_one_method_holds_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    held = []
    for _ in range(2000):
        truth = generator.random()
        correct = (generator.random((1, 25)) < truth).astype(float)
        found = expected_accuracy(correct, np.zeros_like(correct), 1.0)
        held.append(found.low <= truth <= found.high)
    assert 0.935 <= np.mean(held) <= 0.965


def test_error_falls_with_the_labels_that_were_left_out() -> None:
    correct = np.array([[1.0] * 8 + [0.0] * 2])
    found = expected_accuracy(correct, np.zeros_like(correct), 0.8, 0.9)
    assert (found.estimate, found.gain) == pytest.approx((1 - 0.2 * 0.9, 0.2 * 0.1))


def test_log_odds_are_followed_where_samples_are_many_and_otherwise_errors_fall_as_elsewhere() -> None:
    def accuracy(share: float) -> float:
        return float(1 / (1 + np.exp(0.4 - 1.3 * np.log(share))))

    left = remaining_error(accuracy(1 / 3), accuracy(2 / 3), (1 / 3, 2 / 3), 10**9)
    assert 1 - (1 - accuracy(2 / 3)) * left == pytest.approx(accuracy(1.0))
    # With one more label of a million, the error falls as n^-0.25.
    share = 1 - 1e-6
    assert (1 - remaining_error(0.7, 0.7, (share, share), 10**6)) / 1e-6 == pytest.approx(0.25, rel=1e-3)
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
    always = np.repeat(correct[[0, 2]], 3, axis=1)
    assert expected_accuracy(always, np.repeat(losses[[0, 2]], 3, axis=1), 1.0).chosen == 1


def test_methods_are_told_apart_by_many_samples() -> None:
    generator = np.random.default_rng(3)
    correct = np.stack([generator.random(400) < share for share in (0.9, 0.89, 0.6)]).astype(float)
    assert tied_with(correct, 0) == [True, True, False]
    assert tied_with(correct[:, :6], 0)[:2] == [True, True]

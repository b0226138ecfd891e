"""The criterion against exact rational arithmetic and a loop over every trace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.sample_efficiency.criterion import extend_streaks, required_correct, samples_to_criterion


# In binary 0.55 * 100 is above 55 and 0.57 * 100 below 57.
@pytest.mark.parametrize("threshold", ["0.8", "0.75", "0.85", "0.7", "0.95", "0.55", "0.57", "0.0", "1.0", "1e-05"])
def test_required_correct_is_the_fewest_that_pass_exactly(threshold: str) -> None:
    exact = Fraction(threshold)
    for size in range(1, 2001):
        count = required_correct(float(threshold), size)
        assert Fraction(count, size) >= exact
        assert count == 0 or Fraction(count - 1, size) < exact


@pytest.mark.parametrize(("size", "count"), [(5, 4), (10, 8), (500, 400), (1000, 800), (1001, 801), (3, 3)])
def test_eighty_per_cent(size: int, count: int) -> None:
    assert required_correct(0.8, size) == count


def first_streak(correct: NDArray[np.int64], required: int, consecutive: int) -> tuple[int, int] | None:
    """Give the first and last evaluation of the first full streak, one evaluation at a time."""
    streak = 0
    for place, count in enumerate(correct.tolist()):
        streak = streak + 1 if count >= required else 0
        if streak == consecutive:
            return place - consecutive + 1, place
    return None


@pytest.mark.parametrize("consecutive", range(1, 13))
@pytest.mark.parametrize("shape", [(), (7,), (3, 20), (2, 3, 4)])
def test_samples_to_criterion_as_in_a_loop(shape: tuple[int, ...], consecutive: int) -> None:
    generator = np.random.default_rng((consecutive, *shape))
    for evaluations in (0, 1, consecutive - 1, consecutive, consecutive + 1, 40, 200):
        # Passing is likely enough that long streaks are among the traces, and rare enough that some never pass.
        share = generator.uniform(0.3, 1, (*shape, 1))
        correct = np.where(generator.random((*shape, evaluations)) < share, 8, generator.integers(0, 8))
        seen = np.cumsum(generator.integers(1, 5, evaluations))
        samples, onset = samples_to_criterion(correct, seen, 8, consecutive)
        assert samples.shape == onset.shape == shape
        for place in np.ndindex(shape):
            streak = first_streak(correct[place], 8, consecutive)
            expected = (np.inf, np.inf) if streak is None else (seen[streak[1]], seen[streak[0]])
            assert (samples[place], onset[place]) == expected


def test_counts_equal_to_the_required_pass_and_one_less_does_not() -> None:
    correct = np.array([[8, 8, 8], [8, 7, 8], [7, 8, 8]])
    samples, onset = samples_to_criterion(correct, np.array([5, 10, 15]), 8, 2)
    assert samples.tolist() == [10, np.inf, 15]
    assert onset.tolist() == [5, np.inf, 10]


def test_extended_streaks_as_in_a_loop() -> None:
    generator = np.random.default_rng(0)
    streaks = np.zeros((3, 5), dtype=np.int64)
    expected = [[0] * 5 for _ in range(3)]
    for _ in range(50):
        correct = generator.integers(6, 11, (3, 5))
        streaks = extend_streaks(streaks, correct, 7)
        for i, j in np.ndindex(3, 5):
            expected[i][j] = expected[i][j] + 1 if correct[i, j] >= 7 else 0
        assert streaks.tolist() == expected

"""Warnings of photos, of methods that diverged, and of intervals that hold the true value too rarely."""

import numpy as np
import pytest

from headstart.metrics.sample_efficiency.result_warnings import (
    all_warnings,
    interval_warnings,
    last_evaluation_faults,
)
from headstart.metrics.sample_efficiency.scores import t_interval

FLOOR, LIMIT = 10, 300
PAIRS = [[f"train/{number}.jpg", f"test/{number}.jpg"] for number in range(5)]
Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def draw(generator: np.random.Generator, shape: tuple[int, ...], floored: float, censored: float) -> Values:
    """Draw samples to criterion with shares at the floor and beyond the limit."""
    above = FLOOR + np.ceil(generator.exponential(8, shape))
    kind = generator.random(shape)
    return np.where(kind < floored, FLOOR, np.where(kind > 1 - censored, np.inf, above))


@pytest.mark.parametrize(
    ("orderings", "floored", "censored"),
    [(10, 0.7, 0.0), (20, 0.7, 0.0), (30, 0.8, 0.0), (20, 0.0, 0.05), (10, 0.0, 0.1)],
)
def test_intervals_with_a_warning_hold_too_rarely(orderings: int, floored: float, censored: float) -> None:
    generator = np.random.default_rng(0)
    truth = np.minimum(draw(generator, (10**6,), floored, censored), LIMIT).mean()
    warned = holding = 0
    for _ in range(1_000):
        samples = draw(generator, (orderings,), floored, censored)
        warned += bool(interval_warnings(["method"], samples[None], FLOOR))
        low, high = t_interval(np.minimum(samples, LIMIT))
        holding += bool(low <= truth <= high)
    assert holding < 920
    # A sample without any censored ordering cannot show that there are some.
    assert warned > 950 * (1 - (1 - censored) ** orderings if censored else 1)


@pytest.mark.parametrize(
    ("floored", "censored", "orderings"), [(0.0, 0.0, 20), (0.1, 0.0, 20), (0.5, 0.0, 100), (0.0, 0.4, 40)]
)
def test_intervals_that_hold_often_enough_have_no_warning(floored: float, censored: float, orderings: int) -> None:
    samples = draw(np.random.default_rng(1), (20, orderings), floored, censored)
    assert interval_warnings(list(map(str, range(20))), samples, FLOOR) == []


def test_a_method_that_is_always_at_the_floor_or_never_meets_the_criterion_is_warned_of() -> None:
    samples = np.stack([np.full(20, FLOOR), np.full(20, np.inf), np.arange(20.0) + 15])
    floor, censored = interval_warnings(["floor", "never", "fine"], samples, FLOOR)
    assert "floor (20 of 20)" in floor
    assert "never (20 of 20)" in censored
    assert "fine" not in floor + censored


def test_photos_are_counted_and_the_first_are_named() -> None:
    protocol = {
        "near_duplicate_photos": PAIRS,
        "duplicate_photos": [["a", "b", "c"]],
        "unreadable_photos": {"d": "cut"},
    }
    near, same, unreadable = all_warnings({"protocol": protocol})
    assert near.startswith("5 validation photos look like a training photo")
    assert near.endswith("train/0.jpg ~ test/0.jpg, train/1.jpg ~ test/1.jpg, train/2.jpg ~ test/2.jpg, ….")
    assert same == "1 photos are in both splits or in two classes: a = b = c."
    assert unreadable == "1 photos cannot be read and are left out: d."


def test_methods_that_diverged_are_named() -> None:
    methods = {"mine": {"diverged_at": [None, 3, 5], "warnings": ["came out differently."]}, "baseline": {}}
    assert all_warnings({"methods": methods}) == [
        "mine gave predictions that are not finite in 2 orderings.",
        "mine came out differently.",
    ]


def test_orderings_without_a_correct_prediction_at_their_last_evaluation_are_counted() -> None:
    # The last evaluation may be followed by -1, behind the end, and by -2, left out by lazy evaluation.
    counts = np.array([[3, 0, -1, -1], [0, 0, 2, -1], [4, 4, 0, -2], [0, 1, -2, -2], [-1, -1, -1, -1]])
    assert last_evaluation_faults(counts) == ["has no correct prediction at the last evaluation of 2 orderings."]
    assert last_evaluation_faults(counts[[1, 3, 4]]) == []

"""The criterion, also with lazy evaluation, against exact arithmetic and a loop over traces; curves on disk."""

from dataclasses import fields
from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score

from headstart.metrics.sample_efficiency.curves import (
    LARGEST_COUNT,
    SKIPPED,
    Curves,
    class_weights,
    is_open,
    learning_curve_area,
    required_correct,
    samples_to_criterion,
)
from headstart.metrics.sample_efficiency.lazy_evaluation import next_evaluation, window_start

Counts = NDArray[np.int64]


# In binary 0.55 * 100 is above 55 and 0.57 * 100 below 57.
@pytest.mark.parametrize("threshold", ["0.8", "0.75", "0.85", "0.7", "0.95", "0.55", "0.57", "0.0", "1.0", "1e-05"])
def test_required_correct_is_the_fewest_that_pass_exactly(threshold: str) -> None:
    exact = Fraction(threshold)
    for size in range(1, 2001):
        count = required_correct(float(threshold), size)
        assert Fraction(count, size) >= exact
        assert count == 0 or Fraction(count - 1, size) < exact


@pytest.mark.parametrize("sizes", [(85, 15), (7, 7), (3, 0, 5, 8), (1, 2, 3, 4, 5, 6, 7), (997, 991, 983, 977, 971)])
def test_balanced_accuracy_is_that_of_scikit_learn(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(sizes)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    weights = class_weights(np.array(sizes), "balanced_accuracy")
    all_correct = int(weights @ np.array(sizes))
    assert all_correct <= LARGEST_COUNT
    for _ in range(20):
        predicted = np.where(generator.random(len(labels)) < 0.6, labels, generator.permutation(labels))
        share = weights[labels[predicted == labels]].sum() / all_correct
        error = max(sizes) * len(sizes) / LARGEST_COUNT
        assert share == pytest.approx(balanced_accuracy_score(labels, predicted), abs=error)


def first_streak(correct: Counts, required: int, consecutive: int) -> tuple[int, int] | None:
    """Return the first and last evaluation of the first full streak, one evaluation at a time."""
    streak = 0
    for index, count in enumerate(correct.tolist()):
        streak = streak + 1 if count >= required else 0
        if streak == consecutive:
            return index - consecutive + 1, index
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
        for index in np.ndindex(shape):
            streak = first_streak(correct[index], 8, consecutive)
            expected = (np.inf, np.inf) if streak is None else (seen[streak[1]], seen[streak[0]])
            assert (samples[index], onset[index]) == expected


def draw_curves(**changes: object) -> Curves:
    generator = np.random.default_rng(0)
    values = {
        "methods": ["baseline", "nächster"],
        "orderings": np.arange(4, 9),
        "samples_seen": np.arange(8, 168, 8),
        "correct": generator.integers(0, 1001, (2, 5, 20)),
        "validation_size": 1000,
        "all_correct": 1000,
        "measure": "accuracy",
        "limit": 163,
        "threshold": 0.8,
        "consecutive": 3,
    }
    return Curves(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, {"methods": ["baseline"], "correct": np.zeros((1, 5, 20), dtype=np.int64)}])
def test_saved_curves_come_back(changes: dict[str, object]) -> None:
    curves = draw_curves(**changes)
    loaded = Curves.load(BytesIO(curves.content()))
    for field in fields(Curves):
        saved, read = getattr(curves, field.name), getattr(loaded, field.name)
        assert type(read) is type(saved), field.name
        assert np.array_equal(read, saved), field.name
    assert loaded.correct.dtype == loaded.samples_seen.dtype == loaded.orderings.dtype == np.int64


def test_an_evaluation_counts_until_the_next_one() -> None:
    curves = draw_curves(limit=200)
    last = curves.correct[..., -1] / 1000
    for samples, index in ((8, 0), (15, 0), (16, 1), (160, 19), (167, 19)):
        assert np.array_equal(curves.accuracy_at(samples), curves.correct[..., index] / 1000)
    assert all(np.isnan(curves.accuracy_at(samples)).all() for samples in (7, 168))
    assert np.array_equal(draw_curves().accuracy_at(163), last)
    assert np.isnan(draw_curves().accuracy_at(164)).all()


def test_an_area_is_the_mean_over_doublings() -> None:
    # Of a curve that is linear in the logarithm, it is the mean of both ends, wherever the curve begins.
    for first in (1, 8):
        area = learning_curve_area(np.array([[0.2, 0.4, 0.6], [0.5, 0.5, 0.5]]), first * np.array([1, 2, 4]))
        assert area == pytest.approx([0.4, 0.5])


REQUIRED = 8


def follow(trace: Counts, consecutive: int) -> Counts:
    """Learn batch by batch; give what is known at the end, nothing of what lies behind the criterion."""
    counts = np.zeros(0, dtype=np.int64)
    for now in range(len(trace)):
        counts = np.append(counts, SKIPPED)
        while (wanted := next_evaluation(counts, REQUIRED, consecutive)) is not None and wanted <= now:
            # Only the last states are kept.
            assert now - consecutive < wanted
            assert wanted >= window_start(counts, REQUIRED, consecutive)
            assert counts[wanted] == SKIPPED
            counts[wanted] = trace[wanted]
        if wanted is None:
            break
    return counts


def criterion(trace: Counts, consecutive: int) -> tuple[float, float]:
    """Find samples to criterion and onset by a plain loop, one sample per evaluation."""
    streak = first_streak(trace, REQUIRED, consecutive)
    return (np.inf, np.inf) if streak is None else (streak[1] + 1.0, streak[0] + 1.0)


def traces(kind: str) -> list[Counts]:
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 60, 300)
    if kind == "random":
        shares = generator.random(300)
        return [np.where(generator.random(n) < p, 10, 3) for n, p in zip(lengths, shares, strict=True)]
    if kind == "rising":
        return [np.sort(generator.integers(0, 12, n)) for n in lengths]
    # One failure just where it costs the most: every run of passes is one too short, or one as long as it must be.
    periods = generator.integers(1, 12, 300)
    return [np.where((np.arange(n) + 1) % period == 0, 0, 9) for n, period in zip(lengths, periods, strict=True)]


@pytest.mark.parametrize("kind", ["random", "rising", "periodic"])
@pytest.mark.parametrize("consecutive", [1, 2, 3, 10])
def test_samples_to_criterion_and_onset_are_those_of_every_evaluation(kind: str, consecutive: int) -> None:
    for trace in traces(kind):
        counts = follow(trace, consecutive)
        seen = np.arange(1, len(counts) + 1)
        result = samples_to_criterion(counts, seen, REQUIRED, consecutive)
        assert (float(result[0]), float(result[1])) == criterion(trace, consecutive)
        assert not is_open(counts, seen, REQUIRED, [consecutive]).any()
        evaluated = counts != SKIPPED
        assert (counts[evaluated] == trace[: len(counts)][evaluated]).all()


def test_another_criterion_is_open_where_evaluations_were_left_out() -> None:
    counts = follow(np.array([0] * 20 + [9] * 20), 10)
    seen = np.arange(1, len(counts) + 1)
    assert not is_open(counts, seen, REQUIRED, [10]).any()
    # It is known that 9 in a row are not reached before, either.
    assert is_open(counts, seen, REQUIRED, [1, 5]).tolist() == [True, True]
    assert is_open(counts, seen, 0, [10]).tolist() == [True]
    assert is_open(np.array([1, 9, 9]), np.arange(3), REQUIRED, [1, 2]).tolist() == [False, False]


def test_all_traces_of_twelve_evaluations() -> None:
    for bits in range(2**12):
        trace = np.where((bits >> np.arange(12)) & 1, REQUIRED, REQUIRED - 1)
        counts = follow(trace, 3)
        samples, _ = samples_to_criterion(counts, np.arange(1, len(counts) + 1), REQUIRED, 3)
        assert float(samples) == criterion(trace, 3)[0]

"""Lazy evaluation finds what an evaluation after every batch finds, by looking at fewer of them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import SKIPPED, is_open, samples_to_criterion
from headstart.metrics.sample_efficiency.lazy_evaluation import next_evaluation, window_start

REQUIRED = 8
Counts = NDArray[np.int64]


def follow(trace: Counts, consecutive: int) -> Counts:
    """Learn batch by batch; give what is known at the end, nothing of what lies behind the criterion."""
    known = np.zeros(0, dtype=np.int64)
    for now in range(len(trace)):
        known = np.append(known, SKIPPED)
        while (wanted := next_evaluation(known, REQUIRED, consecutive)) is not None and wanted <= now:
            # Only the last states are kept.
            assert now - consecutive < wanted
            assert wanted >= window_start(known, REQUIRED, consecutive)
            assert known[wanted] == SKIPPED
            known[wanted] = trace[wanted]
        if wanted is None:
            break
    return known


def criterion(trace: Counts, consecutive: int) -> tuple[float, float]:
    """Find samples to criterion and onset by a plain loop, one sample per evaluation."""
    streak = 0
    for index, count in enumerate(trace):
        streak = streak + 1 if count >= REQUIRED else 0
        if streak == consecutive:
            return index + 1.0, index + 2.0 - consecutive
    return np.inf, np.inf


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
        known = follow(trace, consecutive)
        seen = np.arange(1, len(known) + 1)
        result = samples_to_criterion(known, seen, REQUIRED, consecutive)
        assert (float(result[0]), float(result[1])) == criterion(trace, consecutive)
        assert not is_open(known, seen, REQUIRED, [consecutive]).any()
        evaluated = known != SKIPPED
        assert (known[evaluated] == trace[: len(known)][evaluated]).all()


def test_all_traces_of_twelve_evaluations() -> None:
    for bits in range(2**12):
        trace = np.where((bits >> np.arange(12)) & 1, REQUIRED, REQUIRED - 1)
        known = follow(trace, 3)
        samples, _ = samples_to_criterion(known, np.arange(1, len(known) + 1), REQUIRED, 3)
        assert float(samples) == criterion(trace, 3)[0]


def test_another_criterion_is_open_where_evaluations_were_left_out() -> None:
    known = follow(np.array([0] * 20 + [9] * 20), 10)
    seen = np.arange(1, len(known) + 1)
    assert not is_open(known, seen, REQUIRED, [10]).any()
    # It is known that 9 in a row are not reached before, either.
    assert is_open(known, seen, REQUIRED, [1, 5]).tolist() == [True, True]
    assert is_open(known, seen, 0, [10]).tolist() == [True]
    assert is_open(np.array([1, 9, 9]), np.arange(3), REQUIRED, [1, 2]).tolist() == [False, False]

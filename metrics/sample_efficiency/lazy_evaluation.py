"""Lazy evaluation: only the evaluations that decide when a trace first meets the criterion."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import SKIPPED


def next_evaluation(correct: NDArray[np.integer[Any]], required: int, consecutive: int) -> int | None:
    """Return the next evaluation to make of a trace.

    The criterion requires the first window of consecutive evaluations that all pass. The next evaluation is the last
    unknown one of the earliest window that can still succeed. If it fails, no window that contains it can succeed, and
    all of those are skipped. The choice depends on the known evaluations alone, so an interrupted run continues with
    the same ones.

    The idea is that of Robert S. Boyer and J Strother Moore, "A Fast String Searching Algorithm", Communications of the
    ACM, 1977, section 2. A pattern is compared from its end, and a mismatch decides how far it can be moved. Here the
    pattern is a run of passes.

    Args:
        correct: Counts of correct predictions, `[evaluations]`, `SKIPPED` where they are unknown.
        required: Lowest count that passes.
        consecutive: Required length of the window.

    Returns:
        The index, which may lie beyond the end of `correct`; None where the criterion is met.
    """
    start = window_start(correct, required, consecutive)
    window = correct[start : start + consecutive]
    unknown = np.flatnonzero(window == SKIPPED)
    if len(window) < consecutive:
        return start + consecutive - 1
    return start + int(unknown[-1]) if len(unknown) else None


def window_start(correct: NDArray[np.integer[Any]], required: int, consecutive: int) -> int:
    """Return the first evaluation of the earliest window that can still succeed; earlier ones are no longer needed.

    Args:
        correct: As for `next_evaluation`.
        required: As for `next_evaluation`.
        consecutive: As for `next_evaluation`.
    """
    start = 0
    for failed in np.flatnonzero((correct < required) & (correct != SKIPPED)).tolist():
        if failed - start >= consecutive:
            break
        start = failed + 1
    return start

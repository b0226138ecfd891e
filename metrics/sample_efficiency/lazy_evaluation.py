"""Which evaluations decide when a trace first meets the criterion, so that the others can be left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import SKIPPED


def next_evaluation(correct: NDArray[np.integer[Any]], required: int, consecutive: int) -> int | None:
    """Give the evaluation that is to be made next of a trace.

    The criterion asks for the first window of evaluations in a row that all pass. Taken is the earliest window that can
    still succeed, and of it the last evaluation that is not known: where that fails, no window that contains it can
    succeed, so that all of those are passed over at once. What follows depends on the evaluations that are known alone,
    so that a run that was cut off goes on with the same ones.

    Source: Robert S. Boyer and J Strother Moore, "A Fast String Searching Algorithm", Communications of the ACM, 1977,
    section 2: a pattern is compared from its end, and what does not fit decides how far it can be moved. Here the
    pattern is a run of passes.

    Args:
        correct: Counts of correct predictions as far as they are known, `[evaluations]`, `SKIPPED` where they are not.
        required: Lowest count that passes.
        consecutive: Evaluations in a row at which it is needed.

    Returns:
        Its number, from 0, which may lie behind what is given; None where the criterion is met.
    """
    start = window_start(correct, required, consecutive)
    window = correct[start : start + consecutive]
    open_ones = np.flatnonzero(window == SKIPPED)
    if len(window) < consecutive:
        return start + consecutive - 1
    return start + int(open_ones[-1]) if len(open_ones) else None


def window_start(correct: NDArray[np.integer[Any]], required: int, consecutive: int) -> int:
    """Give the first evaluation of the earliest window that can still succeed; no earlier one is needed any more.

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

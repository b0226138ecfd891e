"""Single traces: whether their counts are possible, whether two of them agree, and what both know together."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.class_counts import are_possible
from headstart.metrics.sample_efficiency.curves import SKIPPED
from headstart.output.printable import say
from headstart.store.ledger_file import Trace, TraceKey


def is_possible(trace: Trace, key: TraceKey, most: int) -> bool:
    """Whether no count is higher than that of correct predictions alone; a warning says that one is.

    Args:
        trace: A stored trace.
        key: Its key.
        most: The count if all predictions are correct.
    """
    if SKIPPED <= trace.correct.min(initial=0) <= trace.correct.max(initial=0) <= most:
        return True
    _warn(key, f"counts that are not from 0 to {most}")
    return False


def with_possible_classes(
    trace: Trace, key: TraceKey, sizes: NDArray[np.unsignedinteger[Any]], weights: NDArray[np.int64]
) -> Trace:
    """Return a trace without its counts of classes if they cannot be its own; a warning then says so.

    Args:
        trace: A stored trace.
        key: Its key.
        sizes: Validation samples of each class, `[classes]`.
        weights: The weight of a correct prediction by its class, `[classes]`.
    """
    if trace.of_class is None:
        return trace
    of_class = trace.of_class[: 1 + len(trace.correct)]
    if np.array_equal(of_class[0], sizes) and are_possible(of_class[1:], sizes, trace.correct, weights):
        return replace(trace, of_class=of_class)
    _warn(key, "class counts that do not add up to its counts")
    return replace(trace, of_class=None)


def _warn(key: TraceKey, problem: str) -> None:
    say(f"WARNING: In the ledger a trace in ordering {key.ordering} has {problem}; it is measured again.", sys.stderr)


def agree(one: Trace, other: Trace) -> bool:
    """Whether two measurements have the same counts, and the same of each class, as far as both go.

    Args:
        one: The one.
        other: The other.
    """
    # Lazy evaluation may have skipped different evaluations.
    pairs = zip(one.correct.tolist(), other.correct.tolist(), strict=False)
    if any(count != again and SKIPPED not in (count, again) for count, again in pairs):
        return False
    if one.of_class is None or other.of_class is None:
        return True
    end = min(len(one.of_class), len(other.of_class))
    return np.array_equal(one.of_class[:end], other.of_class[:end])


def join(before: Trace, now: Trace) -> Trace:
    """Return the longer of two measurements, the later of equally long ones, with the more counts of classes.

    Args:
        before: The earlier measurement.
        now: The later one.
    """
    longer = before if len(before.correct) > len(now.correct) else now
    of_class = [each.of_class for each in (now, before) if each.of_class is not None]
    return replace(longer, of_class=max(of_class, key=len, default=None))

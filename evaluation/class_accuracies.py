"""Accuracies of each class at some evaluations of traces, read from a ledger and joined."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.class_counts import are_possible, class_accuracies
from headstart.metrics.sample_efficiency.curves import Measure, class_weights

# A method and an ordering.
Key = tuple[str, int]
# As `Trace.of_class`; None where they are damaged.
ClassCounts = NDArray[np.unsignedinteger[Any]] | None


def accuracies_of_traces(
    counts: Iterable[tuple[str, int, ClassCounts]],
    traces: Mapping[Key, NDArray[np.int32]],
    indices: Iterable[int],
    measure: Measure,
) -> tuple[dict[Key, dict[int, Floats]], list[Key]]:
    """Return the accuracies of classes of traces at some evaluations.

    Args:
        counts: Methods, orderings and counts of classes.
        traces: Counts of correct predictions by the measure, `[evaluations]`.
        indices: Indices of the evaluations.
        measure: The measure.

    Returns:
        The known accuracies by trace and index, `[1, 1, classes]`. And the traces whose counts of classes are damaged,
        or cannot be their own.
    """
    accuracies: dict[Key, dict[int, Floats]] = {}
    damaged = []
    wanted = set(indices)
    for method, ordering, of_class in counts:
        correct = traces.get((method, ordering))
        if correct is None:
            continue
        if of_class is None or not _are_possible(of_class, correct, measure):
            damaged.append((method, ordering))
            continue
        sizes, known = of_class[0], of_class[1 : 1 + len(correct)]
        accuracies[method, ordering] = {
            index: class_accuracies(known[index], sizes)[None, None] for index in wanted if index < len(known)
        }
    return accuracies, damaged


def _are_possible(of_class: NDArray[np.unsignedinteger[Any]], correct: NDArray[np.int32], measure: Measure) -> bool:
    sizes = of_class[0].astype(np.int64)
    return are_possible(of_class[1:], sizes, correct, class_weights(sizes, measure))


def join_class_accuracies(
    parts: Iterable[tuple[Mapping[int, Floats], Sequence[int], Sequence[int]]], methods: int, orderings: int
) -> dict[int, Floats]:
    """Join accuracies of classes, see `Curves.class_accuracies`; the first known one counts.

    Args:
        parts: Accuracies, and the indices of their methods and orderings in the result.
        methods: Number of methods of the result.
        orderings: Number of its orderings.
    """
    joined: dict[int, Floats] = {}
    for accuracies, rows, columns in parts:
        for index, values in accuracies.items():
            whole = joined.setdefault(index, np.full((methods, orderings, values.shape[-1]), np.nan))
            block = np.ix_(rows, columns)
            whole[block] = np.where(np.isnan(whole[block]), values, whole[block])
    return joined

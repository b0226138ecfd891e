"""Accuracies of each class at some evaluations of traces, read from a ledger and joined."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.class_counts import class_accuracies

# A method and an ordering.
Key = tuple[str, int]


def accuracies_of_traces(
    counts: Iterable[tuple[str, int, NDArray[np.unsignedinteger[Any]]]], indices: Iterable[int]
) -> dict[Key, dict[int, Floats]]:
    """Return the accuracies of classes of traces at some evaluations.

    Args:
        counts: Methods, orderings and counts of classes, see `Trace.of_class`.
        indices: Indices of the evaluations.

    Returns:
        The known accuracies by trace and index, `[1, 1, classes]`.
    """
    accuracies: dict[Key, dict[int, Floats]] = {}
    wanted = set(indices)
    for method, ordering, (sizes, *known) in counts:
        accuracies[method, ordering] = {
            index: class_accuracies(known[index], sizes)[None, None] for index in wanted if index < len(known)
        }
    return accuracies


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

"""NumC, the number of target classes."""

from __future__ import annotations

from headstart.metrics.arrays import Array, as_array, to_host
from headstart.metrics.transferability.feature_statistics import sort_by_class


def num_classes(labels: Array) -> float:
    """Count the target classes.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 7.
    There it is the baseline that shows how far transferability follows from the number of classes alone. The more
    classes, the harder the target: it ranks targets with its sign reversed, as in table 4a.

    Args:
        labels: Integers from 0, `[samples]`; numbers that do not occur are no classes.

    Returns:
        The number of classes that occur.

    Raises:
        ValueError: The labels are not integers from 0, or there is none.
    """
    array = to_host(as_array("labels", labels))
    if array.ndim != 1 or not len(array):
        raise ValueError(f"labels must be [samples], at least one, not {list(array.shape)}")
    return float(len(sort_by_class(array, len(array))[2]))

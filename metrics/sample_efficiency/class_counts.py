"""Correct predictions of each class, and the accuracies that follow from them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats

Counts = NDArray[np.integer[Any]]


def are_possible(of_class: Counts, sizes: Counts, correct: Counts, weights: Counts) -> bool:
    """Whether correct predictions of each class can be those of a trace.

    Args:
        of_class: Correct predictions of each class at the first evaluations, unsigned, `[evaluations, classes]`.
        sizes: Validation samples of each class, `[classes]`.
        correct: Counts of correct predictions at all evaluations by the measure, `[evaluations]`.
        weights: The weight of a correct prediction by its class, `[classes]`; 1 for accuracy.
    """
    end = min(len(of_class), len(correct))
    totals = of_class[:end].astype(np.int64) @ weights
    return bool((of_class <= sizes).all() and np.array_equal(totals, correct[:end]))


def class_accuracies(of_class: Counts, sizes: Counts) -> Floats:
    """Return the accuracy of each class, NaN of classes without a validation sample.

    Args:
        of_class: Correct predictions of each class, `[..., classes]`.
        sizes: Validation samples of each class, `[classes]`.
    """
    return np.where(sizes > 0, of_class / np.maximum(sizes, 1), np.nan)

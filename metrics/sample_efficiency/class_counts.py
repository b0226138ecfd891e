"""Correct predictions of each class, and the accuracies that follow from them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats

Counts = NDArray[np.integer[Any]]


def class_accuracies(of_class: Counts, sizes: Counts) -> Floats:
    """Return the accuracy of each class, NaN of classes without a validation sample.

    Args:
        of_class: Correct predictions of each class, `[..., classes]`.
        sizes: Validation samples of each class, `[classes]`.
    """
    return np.where(sizes > 0, of_class / np.maximum(sizes, 1), np.nan)

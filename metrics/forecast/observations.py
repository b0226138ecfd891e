"""The known part of a learning curve after a number of labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats

# The window of a slope: so many points between half of the labels and all of them, evenly spaced by their logarithm.
POINTS = 5
# An error below this one is taken as this one, so that its logarithm exists.
LEAST_ERROR = 0.005


def log_error(accuracy: Floats) -> Floats:
    """Return the logarithm of the error, `LEAST_ERROR` at least, of accuracies of any shape."""
    return np.asarray(np.log(np.maximum(1 - accuracy, LEAST_ERROR)))


def observe(
    labels: NDArray[np.int64], accuracies: Floats, known: int, classes: NDArray[np.int64], orderings: int
) -> pd.DataFrame:
    """Return what is known of curves after some labels.

    Args:
        labels: Numbers of labels of the curves, ascending, `[labels]`.
        accuracies: Mean accuracies over orderings, `[curves, labels]`; what lies behind `known` is not read.
        known: The number of labels that are known, one of `labels` at least.
        classes: Number of classes, `[curves]`.
        orderings: Number of orderings that were averaged.

    Returns:
        A row for each curve: `labels`, the number of labels; `level`, the logarithm of the error there; `slope`, the
        slope of that logarithm over that of the labels within the window; `chance`, the logarithm of the error of
        guessing; `orderings`.
    """
    last = int(np.searchsorted(labels, known, side="right")) - 1
    wanted = labels[last] * 2 ** (-np.arange(POINTS) / (POINTS - 1))
    # The last evaluation that had seen no more labels.
    columns = np.maximum(np.searchsorted(labels, np.round(wanted), side="right") - 1, 0)
    errors = log_error(accuracies[:, columns])
    logs = np.log(labels[columns])
    centred = logs - logs.mean()
    spread = float((centred**2).sum())
    slope = errors @ centred / spread if spread else np.zeros(len(errors))
    chance = np.log(1 - 1 / classes)
    level = errors[:, 0]
    return pd.DataFrame(
        {"labels": float(labels[last]), "level": level, "slope": slope, "chance": chance, "orderings": float(orderings)}
    )

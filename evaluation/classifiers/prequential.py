"""Learning curves from labelled samples alone: each sample is predicted before it is learnt."""

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.evaluation.classifiers.left_out import LeftOut
from headstart.metrics.arrays import Floats

# Samples that all orderings together learn for one point of a curve, and the fewest orderings of a point.
LEARNT, FEWEST = 4_000, 5


def curve_sizes(samples: int, classes: int) -> list[int]:
    """Return the numbers of samples at which a curve has points: 1, 2, 3, 4, 6, 8, 12, ... samples per class.

    Args:
        samples: Number of samples; the last size is smaller.
        classes: Number of classes.
    """
    steps = sorted({factor * 2**power for power in range(32) for factor in (1, 1.5) if factor * 2**power % 1 == 0})
    return [int(step) * classes for step in steps if step * classes < samples]


def learning_curve(prepared: LeftOut, orders: NDArray[np.int64], sizes: list[int]) -> list[Floats]:
    """Measure the accuracy of a method on the samples that come next, after so many were learnt.

    Source: A. Philip Dawid, "Present Position and Potential Developments: Some Personal Views: Statistical Theory: The
    Prequential Approach", Journal of the Royal Statistical Society A, 1984. Between two sizes, the classifier of the
    first predicts all samples up to the second. Points of many samples take fewer orderings, as each has more
    predictions.

    Args:
        prepared: The method, and the samples.
        orders: Orderings of the samples, `[orderings, samples]`.
        sizes: As `curve_sizes` returns them.

    Returns:
        Accuracies at each size, `[orderings]`, of the first orderings where not all are fed.
    """
    # Nobody can know the only sample of a class before it is learnt.
    labels = prepared.samples.labels
    is_known = torch.bincount(labels)[labels] > 1
    points = []
    for size, end in zip(sizes, [*sizes[1:], orders.shape[1]], strict=True):
        rows = torch.from_numpy(orders[: max(FEWEST, LEARNT // size)])
        learnt, following = rows[:, :size], rows[:, size:end]
        predicted = prepared.predict(learnt, following).argmax(-1)
        right, scored = predicted == labels[following], is_known[following]
        points.append(((right & scored).sum(1).double() / scored.sum(1).clamp(min=1)).numpy())
    return points

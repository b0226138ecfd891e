"""LEEP, and NCE, its counterpart for hard predictions."""

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Floats, as_array, to_float64
from headstart.metrics.transferability.feature_statistics import check_labels, class_slices, sort_by_class, sum_by_class

# Softmax in bfloat16 misses a sum of 1 by up to about this much.
SUM_TOLERANCE = 1e-2


def leep(probabilities: Array, labels: Array) -> float:
    """Compute LEEP, the mean log of the expected empirical prediction.

    It is the mean over samples of `log(sum over z of P(y | z) theta(x)_z)`. Here theta(x) are the probabilities that
    the source model predicts for its own classes z, and P(y | z) is empirical. Source: Cuong Nguyen et al., "LEEP: A
    New Measure to Evaluate Transferability of Learned Representations", ICML 2020, equations 1 and 2.

    Args:
        probabilities: Of the source classes, `[samples, source classes]`; rows sum to 1.
        labels: Target labels, integers from 0, `[samples]`.

    Returns:
        The score, at most 0; 0 for a single target class.

    Raises:
        ValueError: These are no probabilities, or the labels do not fit.
    """
    values = to_float64("probabilities", probabilities)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"probabilities must be [samples, source classes], at least one of each, not {list(values.shape)}"
        )

    order, _, _, sizes = sort_by_class(labels, len(values))
    rows = values[order]
    sums = rows.sum(1)
    # NaN fails the comparison, too.
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
    if len(wrong):
        raise ValueError(f"probabilities must sum to 1 in every row; row {order[wrong[0]]} sums to {sums[wrong[0]]:g}")
    if (lowest := float(rows.min())) < 0:
        raise ValueError(f"probabilities must be 0 or more, not {lowest:g}")
    return expected_log_prediction(rows, sizes)


def expected_log_prediction(rows: Floats, class_sizes: NDArray[np.int64]) -> float:
    """Compute LEEP of checked probabilities `[samples, source classes]` that are sorted by class."""
    joint = sum_by_class(rows, class_sizes)
    marginal = joint.sum(0)
    conditional = joint / np.where(marginal > 0, marginal, np.ones_like(marginal))
    if len(class_sizes) == 1:
        return 0.0

    # A sample's own share in P(y | z) keeps its prediction above 0.
    parts = zip(class_slices(class_sizes), conditional, strict=True)
    return min(sum(float(np.log(rows[part] @ shares).sum()) for part, shares in parts) / len(rows), 0.0)


def nce(source_labels: Array, target_labels: Array) -> float:
    """Compute the negative conditional entropy of the target labels given the source labels.

    It is `-H(Y | Z)`, the sum over pairs of `P(y, z) log P(y | z)`, in nats. Source: Anh T. Tran, Cuong V. Nguyen, Tal
    Hassner, "Transferability and Hardness of Supervised Classification Tasks", ICCV 2019, equation 7.

    Args:
        source_labels: Labels of the source task, or the source model's predicted classes, integers, `[samples]`.
        target_labels: Integers, `[samples]`.

    Returns:
        The score, at most 0; 0 where the source label determines the target label.

    Raises:
        ValueError: The labels do not fit one another, or are not integers.
    """
    shape = as_array("source_labels", source_labels).shape
    if len(shape) != 1 or not shape[0]:
        raise ValueError(f"source_labels must be [samples], at least one, not {list(shape)}")

    source, target = (
        np.unique(check_labels(name, labels, shape[0]), return_inverse=True)[1]
        for name, labels in (("source_labels", source_labels), ("target_labels", target_labels))
    )
    _, joint = np.unique(source * (target.max() + 1) + target, return_counts=True)
    marginal = np.bincount(source)
    entropy = float((marginal * np.log(marginal)).sum() - (joint * np.log(joint)).sum()) / len(source)
    return 0.0 - max(entropy, 0.0)


def nce_of_probabilities(probabilities: Array, labels: Array) -> float:
    """Compute `nce` of the classes that the source model predicts, those of the highest probabilities."""
    return nce(probabilities.argmax(1), labels)

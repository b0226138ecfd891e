"""The area under a learning curve, one number for all label budgets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats


def learning_curve_area(accuracy: Floats, samples_seen: NDArray[np.integer[Any]]) -> Floats:
    """Return the area under learning curves over the logarithm of the samples, divided by that of accuracy 1.

    It is the mean accuracy where each doubling of the samples counts the same; lines connect the evaluations.

    Source: Isabelle Guyon, Gavin Cawley, Gideon Dror and Vincent Lemaire, "Results of the Active Learning Challenge",
    JMLR Workshop and Conference Proceedings 16, 2011, section 2.3. Their normalisation by random predictions is left
    out.

    Args:
        accuracy: Accuracy at each evaluation, `[..., evaluations]`.
        samples_seen: Samples seen at each evaluation, ascending, two or more, `[evaluations]`.

    Returns:
        From 0 to 1, `[...]`.
    """
    logarithms = np.log(samples_seen)
    return np.asarray(np.trapezoid(accuracy, logarithms) / (logarithms[-1] - logarithms[0]))

"""The best metrics on several targets, and those that are not significantly worse."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.over_targets import LEVEL, SAME, p_value
from headstart.metrics.sample_efficiency.scores import holm


class BestMetrics(NamedTuple):
    """The best of m metrics on t targets.

    Attributes:
        compared: Which metrics have a value on all targets on which any has one, `[m]`; others are not compared.
        best: Which have the highest mean among these, `[m]`; none where there are fewer than two.
        tied: Which others do not differ significantly from one of the best, `[m]`; none with fewer than two targets.
    """

    compared: Flags
    best: Flags
    tied: Flags


def find_best(values: Floats) -> BestMetrics:
    """Find the best metrics.

    Two metrics differ significantly where the p value of their differences on the targets is at most 5 %. It is
    adjusted by Holm's procedure for all pairs, since the best metric is known only from the same values.

    Args:
        values: Values `[m, t]`, higher being better, NaN where undefined.
    """
    known = np.isfinite(values)
    with_values = known.any(axis=0)
    compared = known.sum(axis=1) == max(with_values.sum(), 1)
    best, tied = np.zeros_like(compared), np.zeros_like(compared)
    if compared.sum() > 1:
        complete = values[compared][:, with_values]
        means = complete.mean(axis=1)
        best[compared] = means >= means.max() - SAME
        if complete.shape[1] > 1:
            tied[compared] = ~best[compared] & ~_differ(complete)[:, best[compared]].all(axis=1)
    return BestMetrics(compared, best, tied)


def _differ(values: Floats) -> Flags:
    """Test which pairs of metrics differ significantly on all of these targets, `[m, m]`."""
    pairs = list(combinations(range(len(values)), 2))
    adjusted = holm([p_value(values[one] - values[other]) for one, other in pairs])
    differ = np.zeros((len(values), len(values)), dtype=np.bool_)
    for (one, other), p in zip(pairs, adjusted, strict=True):
        differ[one, other] = differ[other, one] = p <= LEVEL
    return differ

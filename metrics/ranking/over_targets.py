"""Tests and intervals of means over targets, and the best metrics: by t from 8 targets on, by sign flips with fewer.

A t test of few differences depends on their variance. If three happen to be equal, the variance is 0, and so is p. Sign
flips need no variance. With five targets or fewer they never reach 5 %, so that there is no interval of 95 % either.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.sample_efficiency.scores import holm, sign_patterns, t_interval

# Targets from which the t distribution is used, and from which there are intervals.
FEWEST_FOR_T, FEWEST = 8, 6
LEVEL = 0.05
# Differences up to this are rounding errors.
SAME = 1e-12


def p_value(differences: Floats) -> float:
    """Test whether differences `[t]` have the mean 0, two-sided; they are finite.

    By a t test from 8 differences on, else by all sign flips, which assume that differences are symmetric about their
    mean. Differences that are all the same have no variance, and are tested by sign flips, too.
    """
    from scipy import stats

    count = len(differences)
    if count < FEWEST_FOR_T:
        means = _subset_means(differences)
        above, below = (means >= -SAME).sum(), (means <= SAME).sum()
        return float(min(2 * (1 + min(above, below)) / 2**count, 1.0))
    if np.ptp(differences) > SAME:
        return float(stats.ttest_1samp(differences, 0.0).pvalue)
    return 2.0 ** (1 - count) if abs(differences[0]) > SAME else 1.0


def mean_interval(values: Floats, low: float, high: float) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values `[t]`: the means that `p_value` does not reject at 5 %.

    The ends are NaN with fewer than 6 values, and where all are the same: nothing says how far others would be.

    Source: for fewer than 8 values, John A. Hartigan, "Using Subsample Values as Typical Values", Journal of the
    American Statistical Association, 1969: the mean lies between two neighbours among the means of all subsets with
    equal probability.

    Args:
        values: The values, finite.
        low: Lowest possible mean, at which the interval is cut.
        high: Highest possible mean.
    """
    if len(values) < FEWEST or np.ptp(values) <= SAME:
        return float("nan"), float("nan")
    if len(values) < FEWEST_FOR_T:
        means = _subset_means(values)
        outside = int(LEVEL / 2 * 2 ** len(values))
        ends = float(means[outside - 1]), float(means[-outside])
    else:
        ends = t_interval(values, 1 - LEVEL)
    return max(ends[0], low), min(ends[1], high)


def _subset_means(values: Floats) -> Floats:
    """Return the means of all subsets of values `[t]` but the empty one, sorted, `[2**t - 1]`.

    Flipping the signs of a subset raises the sum of all values less m where the mean of the subset is below m.
    """
    subsets = sign_patterns(len(values))[1:] < 0
    return np.sort(subsets @ values / subsets.sum(axis=1))


def respread(values: Floats, resampled: Floats, counts: Floats) -> Floats:
    """Spread values about their mean so that its standard error is that of a bootstrap over targets.

    Intervals and tests of values that share something estimated from the same targets then count that, too.

    Args:
        values: The values `[t]`, NaN where undefined.
        resampled: The values in each resample, `[resamples, t]`.
        counts: How often each target is in each resample, `[resamples, t]`.
    """
    is_defined = np.isfinite(values)
    count = int(is_defined.sum())
    if count < FEWEST or np.ptp(values[is_defined]) <= SAME:
        return values

    weights = counts * (is_defined & np.isfinite(resampled))
    total = weights.sum(axis=1)
    means = np.where(weights > 0, weights * resampled, 0.0).sum(axis=1)[total > 0] / total[total > 0]
    # Means of resamples vary by (t - 1) / t of the variance of a mean.
    error = means.std(ddof=1) * (count / (count - 1)) ** 0.5
    mean, own_error = values[is_defined].mean(), values[is_defined].std(ddof=1) / count**0.5
    return np.asarray(mean + (values - mean) * error / own_error)


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
    is_defined = np.isfinite(values)
    with_values = is_defined.any(axis=0)
    compared = is_defined.sum(axis=1) == max(with_values.sum(), 1)
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

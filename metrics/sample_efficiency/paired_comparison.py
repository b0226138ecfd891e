"""Statistics of samples to criterion: restricted means and paired comparisons over orderings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PERMUTATIONS = 99_999
PERMUTATION_SEED = 0


@dataclass(frozen=True)
class PairedComparison:
    """A custom method against the baseline over the same orderings.

    Attributes:
        mean_difference: Mean of `min(T_baseline, L) - min(T_custom, L)`, in samples; positive is better.
        interval: Its 95 % paired t interval, in samples; NaN with fewer than two orderings.
        relative_improvement: The mean difference in per cent of the baseline's restricted mean.
        relative_interval: The interval in the same unit, the baseline's restricted mean taken as fixed.
        p_value: Two-sided sign-flip permutation test of no difference.
    """

    mean_difference: float
    interval: tuple[float, float]
    relative_improvement: float
    relative_interval: tuple[float, float]
    p_value: float


def restricted(samples: NDArray[np.float64], limit: int) -> NDArray[np.float64]:
    """Cut samples to criterion, infinite where censored, at the sample limit L: `min(T, L)`.

    The mean of what is returned is the restricted mean at L.
    """
    return np.minimum(samples, limit)


def t_interval(differences: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    """Give the t interval of the mean of differences `[orderings]`: lower and upper end.

    NaN with fewer than two values, the mean twice where all values are equal.
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    mean, error = float(np.mean(differences)), float(stats.sem(differences))
    half = float(stats.t.ppf((1 + level) / 2, len(differences) - 1)) * error
    return mean - half, mean + half


def sign_flip_p_value(differences: NDArray[np.float64]) -> float:
    """Test whether paired differences `[orderings]` are symmetric about 0, by flipping their signs, two-sided.

    All sign patterns are enumerated where there are at most `PERMUTATIONS`, else that many are drawn from a
    generator seeded with `PERMUTATION_SEED`. It is 1 for a single difference, and where none is other than 0.
    """
    if len(differences) < 2 or not np.any(differences):
        return 1.0
    result = stats.permutation_test(
        (differences,),
        lambda values, axis: np.mean(values, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=10_000,
        rng=np.random.default_rng(PERMUTATION_SEED),
    )
    return float(result.pvalue)


def compare(baseline: NDArray[np.float64], custom: NDArray[np.float64], limit: int) -> PairedComparison:
    """Compare the restricted means of a custom method and the baseline over the same orderings.

    Args:
        baseline: Samples to criterion of the baseline, infinite where censored, `[orderings]`.
        custom: The same of the custom method.
        limit: The sample limit, common to both.
    """
    differences = restricted(baseline, limit) - restricted(custom, limit)
    percent = 100 / float(restricted(baseline, limit).mean())
    mean, (low, high) = float(differences.mean()), t_interval(differences)
    return PairedComparison(
        mean_difference=mean,
        interval=(low, high),
        relative_improvement=mean * percent,
        relative_interval=(low * percent, high * percent),
        p_value=sign_flip_p_value(differences),
    )


def holm(p_values: list[float]) -> list[float]:
    """Adjust p values for several comparisons with one baseline, in the same order.

    Source: Sture Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics, 1979.
    """
    ranks = np.argsort(p_values)
    scaled = [(len(p_values) - i) * p_values[k] for i, k in enumerate(ranks)]
    adjusted = np.empty(len(p_values))
    adjusted[ranks] = np.minimum(np.maximum.accumulate(scaled), 1) if p_values else []
    return [float(p) for p in adjusted]

"""The scores of a comparison, as they stand in the results: restricted means and paired comparisons over orderings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # which imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import Curves

PERMUTATIONS = 99_999
PERMUTATION_SEED = 0
# Sign patterns that are drawn and multiplied at once.
BATCH = 10_000
# Signs that are kept as they are multiplied; of more orderings they take a byte each.
KEPT = 2**24
FEW_ORDERINGS = 20
# Numbers of samples at which the accuracy is given by default.
ACCURACY_AT = [10, 50, 100, 500]


@dataclass(frozen=True)
class PairedComparison:
    """A custom method against the baseline over the same orderings.

    Attributes:
        mean_difference: Mean of `min(T_baseline, L) - min(T_custom, L)`, in samples; positive is better.
        interval: Its 95 % paired t interval, in samples; NaN with fewer than two orderings.
        relative_improvement: The mean difference in per cent of the baseline's restricted mean.
        relative_interval: Its 95 % interval, see `relative_interval`; NaN with fewer than two orderings, infinite
            where the baseline's own mean is not known to be above 0.
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
    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / len(differences) ** 0.5
    half = t_half_width(error, len(differences) - 1, level)
    return mean - half, mean + half


def t_half_width(error: float, freedom: int, level: float = 0.95) -> float:
    """Give half of the width of the t interval of an estimate with this standard error and degrees of freedom."""
    return float(scipy.special.stdtrit(freedom, (1 + level) / 2)) * error


def relative_interval(
    baseline: NDArray[np.float64], custom: NDArray[np.float64], level: float = 0.95
) -> tuple[float, float]:
    """Give the interval of the relative improvement `1 - R` with `R = E[custom] / E[baseline]`.

    Both means are estimated from the same orderings, so that the ratio's interval holds every R for which a t test
    does not refuse `E[custom - R x baseline] = 0`.

    Source: Edgar C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society,
    Series B, 1954, section 3.

    Args:
        baseline: Positive values, one per ordering, `[orderings]`.
        custom: The same of the custom method, on the same orderings.
        level: Coverage.

    Returns:
        Lower and upper end; NaN with fewer than two orderings, infinite where the t test does not refuse either that
        `E[baseline]` is 0.
    """
    count = len(baseline)
    if count < 2:
        return float("nan"), float("nan")
    squared = float(scipy.special.stdtrit(count - 1, (1 + level) / 2)) ** 2
    # R lies between the roots of a R^2 - 2 b R + c.
    covariance = np.cov(baseline, custom) / count
    means = np.array([baseline.mean(), custom.mean()])
    (a, b), (_, c) = np.outer(means, means) - squared * covariance
    if a <= 0:
        return -float("inf"), float("inf")
    half = max(b * b - a * c, 0.0) ** 0.5
    return float(1 - (b + half) / a), float(1 - (b - half) / a)


def median_interval(samples: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    """Give the interval of the median of samples to criterion `[orderings]` that holds for every distribution.

    Its ends are the order statistics between which the median lies with at least that probability, by the binomial
    distribution, so that censored values, which are infinite, need no model.

    Source: William R. Thompson, "On Confidence Ranges for the Median and Other Expectation Distributions for
    Populations of Unknown Distribution Form", Annals of Mathematical Statistics, 1936, section 2.

    Args:
        samples: The values.
        level: Coverage at least.

    Returns:
        Lower and upper end; infinite where censored values reach there, NaN with fewer values than the level needs.
    """
    count = len(samples)
    # The largest k for which fewer than k of the values lie below the median with at most half of the error.
    tails = scipy.special.bdtr(np.arange(count), count, 0.5)
    k = int((tails <= (1 - level) / 2).sum())
    if k == 0:
        return float("nan"), float("nan")
    ordered = np.sort(samples)
    return float(ordered[k - 1]), float(ordered[count - k])


def sign_flip_p_values(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Test whether paired differences are symmetric about 0, by flipping their signs, two-sided.

    All sign patterns are enumerated where there are at most `PERMUTATIONS`, else that many are drawn from a
    generator seeded with `PERMUTATION_SEED`. It is 1 for a single difference, and where none is other than 0. It is the
    value of `scipy.stats.permutation_test`, which draws the patterns again for every test.

    Args:
        differences: Of several comparisons on the same orderings, `[orderings, comparisons]`.

    Returns:
        p values, `[comparisons]`.
    """
    count, comparisons = differences.shape
    if count < 2 or not comparisons:
        return np.ones(comparisons)
    # Sums of whole numbers, as samples are, are exact in 32 bits and take half the time.
    exact = not (differences % 1).any() and np.abs(differences).sum(axis=0).max() < 2**24
    differences = differences.astype(np.float32 if exact else np.float64)
    observed = differences.sum(axis=0)
    tolerance = 0 if exact else np.abs(observed) * 1e-14
    patterns, below, above = sign_patterns(count), np.zeros(comparisons), np.zeros(comparisons)
    for part in np.array_split(patterns, -(-len(patterns) // BATCH)):
        null = part.astype(differences.dtype, copy=False) @ differences
        below += (null <= observed + tolerance).sum(axis=0)
        above += (null >= observed - tolerance).sum(axis=0)
    # Of patterns that are drawn, the observed one is one more.
    drawn = len(patterns) == PERMUTATIONS
    p_values = np.minimum(2 * (np.minimum(below, above) + drawn) / (len(patterns) + drawn), 1.0)
    return np.where(differences.any(axis=0), p_values, 1.0)


@lru_cache(maxsize=1)
def sign_patterns(count: int) -> NDArray[np.float32 | np.int8]:
    """Give the signs of so many differences in each pattern, `[patterns, count]`: what all tests of a table share."""
    kind: type[np.float32 | np.int8] = np.float32 if PERMUTATIONS * count <= KEPT else np.int8
    if 2**count <= PERMUTATIONS:
        flipped = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return (1 - 2 * flipped).astype(kind)
    generator, left = np.random.default_rng(PERMUTATION_SEED), range(0, PERMUTATIONS, BATCH)
    # What SciPy draws, which puts each difference and its negative into either order by the last bit of a number.
    drawn = (generator.integers(2**32, size=(BATCH, count), dtype=np.uint32).astype(np.int8) & 1 for _ in left)
    return np.concatenate([(2 * each - 1).astype(kind) for each in drawn])[:PERMUTATIONS]


def compare(baseline: NDArray[np.float64], custom: NDArray[np.float64], limit: int) -> list[PairedComparison]:
    """Compare the restricted means of custom methods and the baseline over the same orderings.

    Args:
        baseline: Samples to criterion of the baseline, infinite where censored, `[orderings]`.
        custom: The same of the custom methods, `[methods, orderings]`.
        limit: The sample limit, common to all.

    Returns:
        One comparison for each custom method.
    """
    baseline, custom = restricted(baseline, limit), restricted(custom, limit)
    differences = baseline - custom
    p_values = sign_flip_p_values(differences.T)
    return [_compare(baseline, its, d, p) for its, d, p in zip(custom, differences, p_values.tolist(), strict=True)]


def _compare(
    baseline: NDArray[np.float64], custom: NDArray[np.float64], differences: NDArray[np.float64], p_value: float
) -> PairedComparison:
    mean, (low, high) = float(differences.mean()), relative_interval(baseline, custom)
    return PairedComparison(
        mean_difference=mean,
        interval=t_interval(differences),
        relative_improvement=mean * 100 / float(baseline.mean()),
        relative_interval=(100 * low, 100 * high),
        p_value=p_value,
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


def score(curves: Curves, accuracy_at: Sequence[int]) -> dict[str, Any]:
    """Score every method, and compare the custom ones with the baseline.

    Args:
        curves: The traces.
        accuracy_at: Numbers of samples at which the accuracy is given.

    Returns:
        `methods` and `comparisons` as in `results.json`, with None for what is censored or undefined.
    """
    samples, onset = curves.samples_to_criterion()
    at = {number: curves.accuracy_at(number) for number in accuracy_at}
    pairs = compare(samples[0], samples[1:], curves.limit)
    adjusted = holm([pair.p_value for pair in pairs])
    return {
        "methods": {
            name: {
                "samples_to_criterion": [_count(value) for value in samples[i]],
                "onset": [_count(value) for value in onset[i]],
                "accuracy_at": {str(number): [finite(value) for value in found[i]] for number, found in at.items()},
                "reached": int(np.isfinite(samples[i]).sum()),
                "evaluations": (curves.correct[i] >= 0).sum(-1).tolist(),
                # Infinite values sort last, so that the median is not finite once half of the orderings are censored.
                "median": finite(float(np.median(samples[i]))),
                "restricted_mean": float(restricted(samples[i], curves.limit).mean()),
            }
            for i, name in enumerate(curves.methods)
        },
        "comparisons": {
            name: _describe(pair, p_holm, samples[0], custom)
            for name, pair, p_holm, custom in zip(curves.methods[1:], pairs, adjusted, samples[1:], strict=True)
        },
    }


def _describe(
    pair: PairedComparison, p_holm: float, baseline: NDArray[np.float64], custom: NDArray[np.float64]
) -> dict[str, Any]:
    description = {
        "relative_improvement_percent": pair.relative_improvement,
        "ci95": [finite(end) for end in pair.relative_interval],
        "p_value": pair.p_value,
        "p_value_holm": p_holm,
        "difference_samples": {"mean": pair.mean_difference, "ci95": [finite(end) for end in pair.interval]},
        "per_ordering": [_improvement(b, c) for b, c in zip(baseline, custom, strict=True)],
    }
    if len(baseline) < FEW_ORDERINGS:
        description["note"] = f"{len(baseline)} orderings; at least {FEW_ORDERINGS} are recommended"
    return description


def _improvement(baseline: float, custom: float) -> float | str:
    """Give the relative improvement of one ordering in per cent, or which side is censored."""
    censored = [name for name, value in (("baseline", baseline), ("custom", custom)) if np.isinf(value)]
    if censored:
        return f"{' and '.join(censored)} censored"
    return float((baseline - custom) / baseline * 100)


def finite(value: float | np.floating[Any]) -> float | None:
    """Return a number as JSON can hold it, None where it is infinite or unknown."""
    return float(value) if np.isfinite(value) else None


def _count(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None

"""Scores of a comparison as in the results: restricted means and paired comparisons over orderings."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.sample_efficiency.curves import Curves

PERMUTATIONS = 99_999
PERMUTATION_SEED = 0
# Sign patterns that are multiplied at once, and their signs, or their products.
BATCH, BATCH_SIGNS = 10_000, 2**21
FEW_ORDERINGS = 20
# Default numbers of samples at which the accuracy is reported.
ACCURACY_AT = [10, 50, 100, 500]


def restricted(samples: Floats, limit: int) -> Floats:
    """Return samples to criterion T, infinite where censored, cut at the sample limit L: `min(T, L)`.

    Their mean is the restricted mean at L.
    """
    return np.minimum(samples, limit)


def t_interval(differences: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the t interval of the mean of differences `[orderings]`: lower and upper end.

    The ends are NaN with fewer than two values, and both the mean if all values are equal.
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / len(differences) ** 0.5
    half = t_half_width(error, len(differences) - 1, level)
    return mean - half, mean + half


def t_half_width(error: float, freedom: float, level: float = 0.95) -> float:
    """Return half of the width of the t interval of an estimate with this standard error and degrees of freedom."""
    return float(scipy.special.stdtrit(freedom, (1 + level) / 2)) * error


def mean_of_means(groups: Sequence[Floats], level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of the means of independent groups of values, with its t interval over the values of each.

    Source: Franklin E. Satterthwaite, "An Approximate Distribution of Estimates of Variance Components", Biometrics
    Bulletin, 1946, equation 17, for the degrees of freedom.

    Args:
        groups: Values of each group, such as those of the orderings of each setting, `[values]`.
        level: Coverage.

    Returns:
        Mean, lower and upper end; the ends are NaN where a group has fewer than two values.
    """
    mean = float(np.mean([group.mean() for group in groups]))
    if min(map(len, groups)) < 2:
        return mean, float("nan"), float("nan")
    variances = np.array([group.var(ddof=1) / len(group) for group in groups])
    if not variances.any():
        return mean, mean, mean
    freedom = variances.sum() ** 2 / sum(v**2 / (len(group) - 1) for v, group in zip(variances, groups, strict=True))
    half = t_half_width(float(variances.sum()) ** 0.5 / len(groups), freedom, level)
    return mean, mean - half, mean + half


def relative_interval(baseline: Floats, custom: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the relative improvement `1 - R` with `R = E[custom] / E[baseline]`.

    Both means are estimated from the same orderings. The interval of the ratio holds every R for which a t test does
    not reject `E[custom - R x baseline] = 0`.

    Source: Edgar C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society,
    Series B, 1954, section 3.

    Args:
        baseline: Positive values, one per ordering, `[orderings]`.
        custom: Values of the custom method on the same orderings.
        level: Coverage.

    Returns:
        Lower and upper end; NaN with fewer than two orderings, infinite if the t test does not reject `E[baseline] = 0`
        either.
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


def median_interval(samples: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the median of samples to criterion `[orderings]` that holds for every distribution.

    The ends are the order statistics between which the median lies with at least that probability, by the binomial
    distribution. Censored values, which are infinite, therefore need no model.

    Source: William R. Thompson, "On Confidence Ranges for the Median and Other Expectation Distributions for
    Populations of Unknown Distribution Form", Annals of Mathematical Statistics, 1936, section 2.

    Args:
        samples: The values.
        level: Least coverage.

    Returns:
        Lower and upper end; infinite if it is a censored value, NaN with fewer values than the level needs.
    """
    count = len(samples)
    # The largest k for which fewer than k of the values lie below the median with at most half of the error.
    tails = scipy.special.bdtr(np.arange(count), count, 0.5)
    k = int((tails <= (1 - level) / 2).sum())
    if k == 0:
        return float("nan"), float("nan")
    ordered = np.sort(samples)
    return float(ordered[k - 1]), float(ordered[count - k])


def sign_flip_p_values(differences: Floats) -> Floats:
    """Return p values of the two-sided test whether paired differences are symmetric about 0, by flipping their signs.

    Up to `PERMUTATIONS` sign patterns are enumerated; of more, that many are sampled by a generator seeded with
    `PERMUTATION_SEED`. The p value is 1 for a single difference, and if all are 0. It equals that of
    `scipy.stats.permutation_test`, which samples the patterns again for every test.

    Args:
        differences: Differences of several comparisons on the same orderings, `[orderings, comparisons]`.

    Returns:
        p values, `[comparisons]`.
    """
    count, comparisons = differences.shape
    if count < 2 or not comparisons:
        return np.ones(comparisons)

    exact = is_exact_in_floats(differences.T)
    differences = differences.astype(np.float32 if exact else np.float64)
    observed = differences.sum(axis=0)[:, None]
    tolerance = 0 if exact else np.abs(observed) * 1e-14

    patterns, below, above = min(2**count, PERMUTATIONS), np.zeros(comparisons), np.zeros(comparisons)
    at_once = max(1, min(BATCH, BATCH_SIGNS // max(count, comparisons)))
    for part in np.array_split(np.arange(patterns), -(-patterns // at_once)):
        signs = sign_patterns(count, slice(part[0], part[-1] + 1)).astype(differences.dtype, copy=False)
        null = differences.T @ signs.T
        below += np.count_nonzero(null <= observed + tolerance, axis=1)
        above += np.count_nonzero(null >= observed - tolerance, axis=1)

    # The observed pattern counts in addition to sampled ones.
    is_sampled = patterns == PERMUTATIONS
    p_values = np.minimum(2 * (np.minimum(below, above) + is_sampled) / (patterns + is_sampled), 1.0)
    return np.where(differences.any(axis=0), p_values, 1.0)


def is_exact_in_floats(values: Floats) -> bool:
    """Return whether sums with any signs are exact in 32 bits, which take half the time, as for whole numbers.

    Args:
        values: The summands, `[sums, summands]`.
    """
    return not (values % 1).any() and bool(np.abs(values).sum(axis=-1).max() < 2**24)


def sign_patterns(count: int, chosen: slice | Indices = slice(None)) -> NDArray[np.int8]:
    """Return the signs of some differences in some patterns, `[patterns, count]`.

    Args:
        count: Number of differences.
        chosen: Indices of the patterns, by default of all `min(2**count, PERMUTATIONS)`.
    """
    return 1 - 2 * np.unpackbits(_stored_patterns(count)[chosen], axis=1, count=count).view(np.int8)


@lru_cache(maxsize=1)
def _stored_patterns(count: int) -> NDArray[np.uint8]:
    """Return all patterns, shared by all tests of a table, with a bit for each sign that is flipped."""
    if 2**count <= PERMUTATIONS:
        return np.packbits((np.arange(2**count)[:, None] >> np.arange(count)) & 1, axis=1)

    generator, parts = np.random.default_rng(PERMUTATION_SEED), []
    for start in range(0, PERMUTATIONS, BATCH // 10):
        size = min(BATCH // 10, PERMUTATIONS - start), count
        # The last bit of a random number decides about the sign, as in SciPy, where 1 is a plus.
        bits = generator.integers(2**32, size=size, dtype=np.uint32).astype(np.uint8) & 1
        parts.append(np.packbits(1 - bits, axis=1))
    return np.concatenate(parts)


def relative_improvement(baseline: Floats, custom: Floats) -> tuple[float, tuple[float, float]]:
    """Return by how much a method's mean is lower than the baseline's, in per cent of that, with its interval.

    Args:
        baseline: As for `relative_interval`.
        custom: As for `relative_interval`.

    Returns:
        The improvement, positive if the method is better, and the ends of its interval, as for `relative_interval`.
    """
    low, high = relative_interval(baseline, custom)
    return float((baseline - custom).mean()) * 100 / float(baseline.mean()), (100 * low, 100 * high)


def holm(p_values: list[float]) -> list[float]:
    """Return p values adjusted for several comparisons with one baseline, in the same order.

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
        accuracy_at: Numbers of samples at which the accuracy is reported.

    Returns:
        `methods` and `comparisons` as in `results.json`, with None for censored or undefined values.
    """
    samples, onset = curves.samples_to_criterion()
    at = {number: curves.accuracy_at(number) for number in accuracy_at}
    cut = restricted(samples, curves.limit)
    p_values = sign_flip_p_values((cut[0] - cut[1:]).T).tolist()
    tested = zip(curves.methods[1:], samples[1:], p_values, holm(p_values), strict=True)

    return {
        "methods": {
            name: {
                "samples_to_criterion": [_count(value) for value in samples[i]],
                "onset": [_count(value) for value in onset[i]],
                "accuracy_at": {str(number): [finite(value) for value in values[i]] for number, values in at.items()},
                "reached": int(np.isfinite(samples[i]).sum()),
                "evaluations": (curves.correct[i] >= 0).sum(-1).tolist(),
                # Infinite values sort last, so that the median is infinite once half of the orderings are censored.
                "median": finite(float(np.median(samples[i]))),
                "restricted_mean": float(restricted(samples[i], curves.limit).mean()),
            }
            for i, name in enumerate(curves.methods)
        },
        "comparisons": {
            name: _describe(samples[0], custom, curves.limit, p_value, p_holm)
            for name, custom, p_value, p_holm in tested
        },
    }


def _describe(baseline: Floats, custom: Floats, limit: int, p_value: float, p_holm: float) -> dict[str, Any]:
    """Return the comparison of a method with the baseline by their samples to criterion, infinite where censored."""
    compared = restricted(baseline, limit), restricted(custom, limit)
    improvement, ends = relative_improvement(*compared)
    differences = compared[0] - compared[1]
    description = {
        "relative_improvement_percent": improvement,
        "ci95": finite_ends(ends),
        "p_value": p_value,
        "p_value_holm": p_holm,
        "difference_samples": {"mean": float(differences.mean()), "ci95": finite_ends(t_interval(differences))},
        "per_ordering": [_improvement(b, c) for b, c in zip(baseline, custom, strict=True)],
    }
    if len(baseline) < FEW_ORDERINGS:
        description["note"] = f"{len(baseline)} orderings; at least {FEW_ORDERINGS} are recommended"
    return description


def _improvement(baseline: float, custom: float) -> float | str:
    """Return the relative improvement of one ordering in per cent, or a text on the censored methods."""
    censored = [name for name, value in (("baseline", baseline), ("custom", custom)) if np.isinf(value)]
    if censored:
        return f"{' and '.join(censored)} censored"
    return float((baseline - custom) / baseline * 100)


def finite(value: float | np.floating[Any]) -> float | None:
    """Return a number as JSON can hold it, None where it is infinite or unknown."""
    return float(value) if np.isfinite(value) else None


def finite_ends(ends: Iterable[float]) -> list[float | None]:
    """Return the ends of an interval as JSON can hold them, each as `finite` does."""
    return [finite(end) for end in ends]


def _count(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None

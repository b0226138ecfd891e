"""The scores of a comparison, as they stand in the results: restricted means and paired comparisons over orderings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PERMUTATIONS = 99_999
PERMUTATION_SEED = 0
FEW_ORDERINGS = 20


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


def score(
    methods: list[str],
    samples: NDArray[np.float64],
    onset: NDArray[np.float64],
    final_accuracy: NDArray[np.float64],
    limit: int,
) -> dict[str, Any]:
    """Score every method, and compare the custom ones with the baseline.

    Args:
        methods: Names, the baseline first, `[methods]`.
        samples: Samples to criterion, infinite where censored, `[methods, orderings]`.
        onset: Samples seen at the first evaluation of the streak, likewise.
        final_accuracy: Accuracy at the last evaluation, `[methods, orderings]`.
        limit: Where restricted means are cut.

    Returns:
        `methods` and `comparisons` as in `results.json`, with None for what is censored or undefined.
    """
    custom = range(1, len(methods))
    pairs = [compare(samples[0], samples[i], limit) for i in custom]
    adjusted = holm([pair.p_value for pair in pairs])
    return {
        "methods": {
            name: _score_method(samples[i], onset[i], final_accuracy[i], limit) for i, name in enumerate(methods)
        },
        "comparisons": {
            methods[i]: _describe(pair, p_holm, samples[0], samples[i])
            for i, pair, p_holm in zip(custom, pairs, adjusted, strict=True)
        },
    }


def _score_method(
    samples: NDArray[np.float64], onset: NDArray[np.float64], final: NDArray[np.float64], limit: int
) -> dict[str, Any]:
    return {
        "samples_to_criterion": [_count(value) for value in samples],
        "onset": [_count(value) for value in onset],
        "final_accuracy": final.tolist(),
        "reached": int(np.isfinite(samples).sum()),
        # Infinite values sort last, so that the median is not finite once half of the orderings are censored.
        "median": _number(float(np.median(samples))),
        "restricted_mean": float(restricted(samples, limit).mean()),
    }


def _describe(
    pair: PairedComparison, p_holm: float, baseline: NDArray[np.float64], custom: NDArray[np.float64]
) -> dict[str, Any]:
    description = {
        "relative_improvement_percent": pair.relative_improvement,
        "ci95": [_number(end) for end in pair.relative_interval],
        "p_value": pair.p_value,
        "p_value_holm": p_holm,
        "difference_samples": {"mean": pair.mean_difference, "ci95": [_number(end) for end in pair.interval]},
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


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _count(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None

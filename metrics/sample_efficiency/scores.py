"""The scores of a comparison, as they stand in the results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.sample_efficiency.paired_comparison import PairedComparison, compare, holm, restricted

FEW_ORDERINGS = 20


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

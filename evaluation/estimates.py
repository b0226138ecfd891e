"""Estimates with their intervals as documents have them and as text, and means over targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.over_targets import FEWEST, FEWEST_FOR_T, mean_interval, p_value
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.metrics.sample_efficiency.scores import finite, finite_ends
from headstart.output.tables import format_estimate

# What tables say of their intervals.
INTERVAL = (
    f"in brackets its 95 % interval over targets (t from {FEWEST_FOR_T} targets on, sign flips with {FEWEST} or "
    f"{FEWEST_FOR_T - 1}; none with fewer, or where all are equal)"
)


def mean_over_targets(values: Floats) -> Floats:
    """Return the mean of values `[..., t]` over the targets on which they are defined; NaN if there is none."""
    is_finite = np.isfinite(values)
    count = is_finite.sum(axis=-1)
    total = np.where(is_finite, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


def over_targets(
    values: Floats,
    targets: Sequence[str],
    bounds: tuple[float, float],
    spread: Floats | None = None,
    tested: bool = False,
) -> dict[str, Any]:
    """Describe values `[t]`: each of them, their mean, and its interval over the targets where they are defined.

    Args:
        values: The values, NaN where they are undefined.
        targets: Names of the targets.
        bounds: The lowest and the highest possible value.
        spread: Values as `respread` returns them, which interval and test are of; by default the values.
        tested: Whether to add the p value of the test that the mean is 0.
    """
    spread = values if spread is None else spread
    finite_spread = spread[np.isfinite(spread)]
    return {
        "mean": finite(float(mean_over_targets(values))),
        "ci95": finite_ends(mean_interval(finite_spread, *bounds)),
        **({"p_value": p_value(finite_spread) if len(finite_spread) else None} if tested else {}),
        "per_target": {target: finite(value) for target, value in zip(targets, values, strict=True)},
    }


def by_measure(
    values: Floats, targets: Sequence[str], spread: Floats | None = None, differences: bool = False
) -> dict[str, Any]:
    """Describe values `[t, e]` by measure, each as `over_targets` does.

    Args:
        values: The values.
        targets: Names of the targets.
        spread: As for `over_targets`, `[t, e]`.
        differences: Whether they are differences of two values of the measure, which are tested.
    """
    spread = values if spread is None else spread
    summaries: dict[str, Any] = {}
    for index, (name, measure) in enumerate(EVALUATION_MEASURES.items()):
        bounds = (measure.lowest - 1, 1 - measure.lowest) if differences else (measure.lowest, 1.0)
        summaries[name] = over_targets(values[:, index], targets, bounds, spread[:, index], differences)
    return summaries


def few_targets(count: int) -> list[str]:
    """Return a sentence that says that so few targets have no intervals and no significant differences, if so."""
    if count >= FEWEST:
        return []
    have = "1 target has" if count == 1 else f"{count} targets have"
    return [f"{have} no intervals of 95 % and no significant differences at 5 %; both need {FEWEST} targets."]


def with_interval(summary: Mapping[str, Any]) -> str:
    """Format a mean over targets with its interval."""
    return format_estimate(summary["mean"], summary["ci95"], ".3f")

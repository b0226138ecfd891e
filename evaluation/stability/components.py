"""Which component of an experiment moves the outcome most, by how much, and how certain that is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headstart.evaluation.over_targets import number
from headstart.evaluation.stability.study import Study
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.output.tables import format_number


def setup_stability_interval(study: Study, component: str) -> tuple[float, float]:
    """Compute the 95 % interval of the setup stability by the jackknife over targets, within -1 and 1; NaN if unknown.

    Experiments are left out target by target: pools share most of their sources, and measures agree on most of what
    they measure, so that only targets can be considered independent.
    """
    mean = study.setup_stability[component].mean
    if mean is None:
        return math.nan, math.nan
    low, high = jackknife_interval(mean, study.setup_stability_without()[component])
    return float(np.maximum(low, -1.0)), float(np.minimum(high, 1.0))


def moves_most(study: Study) -> dict[str, Any] | None:
    """Compare the component with the lowest setup stability with the next one; None with fewer than two.

    Returns:
        `component`, `next`, by how much less outcomes agree where the first varies (`difference` and its `ci95`, by the
        jackknife over targets), and the targets without which another would be the first (`unless_without`).
    """
    means = {name: agreement.mean for name, agreement in study.setup_stability.items() if agreement.mean is not None}
    if len(means) < 2:
        return None
    first, second = sorted(means, key=means.__getitem__)[:2]
    without = study.setup_stability_without()
    others = np.array([without[name] for name in means if name != first])
    changed = np.flatnonzero((others < without[first]).any(axis=0))
    difference = means[second] - means[first]
    return {
        "component": first,
        "next": second,
        "difference": difference,
        "ci95": [number(end) for end in jackknife_interval(difference, without[second] - without[first])],
        "unless_without": [study.table.targets[i] for i in changed],
    }


def moves_most_in_words(study: Study) -> list[str]:
    """Return a sentence that names the component that moves the outcome most; none if fewer than two are defined."""
    result = moves_most(study)
    if result is None:
        return []
    first, (low, high) = result["component"], result["ci95"]
    mean = study.setup_stability[first].mean
    agreement = format_interval(mean, *map(number, setup_stability_interval(study, first)))
    unsure = ", a difference that the targets do not tell from 0" if low is not None and low <= 0 <= high else ""
    unless = f", unless {' or '.join(result['unless_without'])} is left out" if result["unless_without"] else ""
    return [
        f"What moves the outcome most is the {first}{unless}: two experiments that differ in it alone agree by "
        f"{agreement}, which is {format_interval(result['difference'], low, high)} less than two that differ in the "
        f"{result['next']} alone{unsure}."
    ]


def format_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Format a value with its interval, if that is known."""
    interval = "" if low is None else f" [{format_number(low, '.2f')}, {format_number(high, '.2f')}]"
    return f"{format_number(value, '.2f')}{interval}"

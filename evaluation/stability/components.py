"""Which component of an experiment moves the outcome most, by how much, and how sure that is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.over_targets import number
from headstart.evaluation.stability.study import Study
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.output.tables import format_number

Values = NDArray[np.float64]


def setup_stability_interval(study: Study, component: str) -> tuple[float, float]:
    """Give the 95 % interval of the setup stability by the jackknife over targets, within -1 and 1; NaN where unknown.

    Experiments are left out target by target: pools share most of their sources, and measures most of what they see, so
    that only targets can be taken for independent.
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
    means = {name: found.mean for name, found in study.setup_stability.items() if found.mean is not None}
    if len(means) < 2:
        return None
    first, second = sorted(means, key=means.__getitem__)[:2]
    without = study.setup_stability_without()
    others = np.array([without[name] for name in means if name != first])
    changed = np.flatnonzero((others < without[first]).any(axis=0))
    difference = means[second] - means[first]
    ends = jackknife_interval(difference, without[second] - without[first])
    return {
        "component": first,
        "next": second,
        "difference": difference,
        "ci95": [number(end) for end in ends],
        "unless_without": [study.table.targets[place] for place in changed],
    }


def moves_most_in_words(study: Study) -> list[str]:
    """Say which component moves the outcome most, in one sentence; none where fewer than two can be compared."""
    found = moves_most(study)
    if found is None:
        return []
    first, (low, high) = found["component"], found["ci95"]
    mean = study.setup_stability[first].mean
    agreement = interval_in_words(mean, *map(number, setup_stability_interval(study, first)))
    unsure = ", a difference that the targets do not tell from 0" if low is not None and low <= 0 <= high else ""
    unless = f", unless {' or '.join(found['unless_without'])} is left out" if found["unless_without"] else ""
    return [
        f"What moves the outcome most is the {first}{unless}: two experiments that differ in it alone agree by "
        f"{agreement}, which is {interval_in_words(found['difference'], low, high)} less than two that differ in the "
        f"{found['next']} alone{unsure}."
    ]


def interval_in_words(value: float | None, low: float | None, high: float | None) -> str:
    """Write a value with its interval, where it is known."""
    between = "" if low is None else f" [{format_number(low, '.2f')}, {format_number(high, '.2f')}]"
    return f"{format_number(value, '.2f')}{between}"

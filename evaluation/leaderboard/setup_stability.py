"""Setup stability: which part of the setup moves the ranking of methods most."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.leaderboard.entries import interval_if_known
from headstart.evaluation.leaderboard.over_settings import common_methods, one_of_each, restricted_of
from headstart.evaluation.leaderboard.sensitivity import TIES, CriterionScores
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, Setting, Values, differing_within, values_of
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.metrics.ranking.outcome_agreement import MeanAgreement, agreement_vectors

# Parts of a setup, and the keys of the protocol that they consist of.
PARTS = {
    "data set": DATA_SET,
    "backbone": ("backbone", "weights_sha256"),
    "batch size": ("batch_size",),
}
# Keys that data sets may choose for themselves, but in which settings of one data set must not differ.
OWN = ("threshold", "max_samples")
# How often the orderings of a setting are halved.
HALVINGS, SEED = 20, 0


class Experiment(NamedTuple):
    """A ranking of methods, which is compared with the others of its group.

    Attributes:
        outcome: Restricted samples, `[methods]`, lower is better.
        group: The group, within which setups differ in one part alone.
        unit: The unit of the jackknife, which leaves out all experiments of a unit.
    """

    outcome: Values
    group: Hashable
    unit: Hashable


def describe_setup_stability(
    settings: Sequence[Setting], grids: Sequence[list[CriterionScores]]
) -> dict[str, Any] | None:
    """Return `setup_stability` as it stands in `leaderboard.json`; None where settings share fewer than two methods.

    Args:
        settings: The settings.
        grids: Their scores under all criteria.
    """
    methods, _ = common_methods(settings)
    if len(methods) < 2:
        return None
    values = restricted_of(settings, methods)
    experiments = {part: list(_over_settings(settings, values, part)) for part in PARTS}

    for position, part in enumerate(("evaluations", "threshold")):
        # Experiments of a group share the other value of the criterion. Undecided traces are cut, at another number of
        # samples for each criterion, which moves the ranking as well.
        experiments[part] = [
            Experiment(scores.values[rows].mean(1), (index, (scores.threshold, scores.consecutive)[position]), index)
            for index, (setting, grid) in enumerate(zip(settings, grids, strict=True))
            for rows in [[setting.names.index(name) for name in methods]]
            for scores in grid
            if scores.values is not None and not scores.undecided
        ]
    experiments["ordering"] = [
        Experiment(outcome, index, index) for index, each in enumerate(values) for outcome in each.T
    ]
    experiments["half of the orderings"] = list(_over_halves(values))
    return {"methods": methods, "parts": [describe_stability(part, each) for part, each in experiments.items()]}


def _over_settings(settings: Sequence[Setting], values: Sequence[Values], part: str) -> Iterator[Experiment]:
    """Yield settings that differ in one part alone."""
    varied, compared = PARTS[part], settings
    keys = dict.fromkeys((*chain(*PARTS.values()), *CHOICES))
    keys |= dict.fromkeys(differing_within([each.protocol for each in settings], list(keys)))
    if varied == DATA_SET:
        keys = dict.fromkeys(key for key in keys if key not in OWN)
        compared, _ = one_of_each(settings, list(keys))
    names = {each.name for each in compared}
    fixed = [key for key in keys if key not in varied]
    for each, restricted in zip(settings, values, strict=True):
        if each.name in names:
            yield Experiment(restricted.mean(1), values_of(each.protocol, fixed), values_of(each.protocol, varied))


def _over_halves(values: Sequence[Values]) -> Iterator[Experiment]:
    """Yield random halves of the orderings of each setting."""
    generator = np.random.default_rng(SEED)
    for index, restricted in enumerate(values):
        half = restricted.shape[1] // 2
        for halving in range(HALVINGS if half else 0):
            order = generator.permutation(restricted.shape[1])
            for part in (order[:half], order[half : 2 * half]):
                yield Experiment(restricted[:, part].mean(1), (index, halving), index)


def describe_stability(part: str, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """Return the stability, its interval by the jackknife over units, and the number of compared pairs.

    Args:
        part: The part in which experiments of a group differ.
        experiments: The experiments.
    """
    if not experiments:
        return {"part": part, "stability": None, "interval": None, "compared": 0}
    vectors, defined = agreement_vectors(np.stack([each.outcome for each in experiments]), TIES)
    groups, units = _numbers([each.group for each in experiments]), _numbers([each.unit for each in experiments])
    agreement, ends = _agreement(vectors, defined, groups), None

    if agreement.mean is not None:
        without = [
            _agreement(vectors[units != unit], defined[units != unit], groups[units != unit]).mean
            for unit in range(units.max() + 1)
        ]
        low, high = jackknife_interval(agreement.mean, np.array(without, dtype=np.float64))
        ends = interval_if_known(float(np.maximum(low, -1.0)), float(np.minimum(high, 1.0)))
    return {"part": part, "stability": agreement.mean, "interval": ends, "compared": agreement.pairs}


def _numbers(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels])


def _agreement(vectors: Values, defined: NDArray[np.bool_], groups: NDArray[np.intp]) -> MeanAgreement:
    agreement = MeanAgreement()
    if len(groups):
        sums = np.zeros((groups.max() + 1, vectors.shape[1]))
        np.add.at(sums, groups, vectors)
        agreement.add(sums, np.bincount(groups, weights=defined).astype(np.int64))
    return agreement

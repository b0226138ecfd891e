"""Which part of the setup moves the ranking of methods most: setup stability, applied to this benchmark."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.leaderboard.over_settings import common_methods, one_of_each
from headstart.evaluation.leaderboard.rows import Scored, interval_if_known
from headstart.evaluation.leaderboard.sensitivity import TIES, Cell
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, differing_within, values_of
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.metrics.ranking.outcome_agreement import MeanAgreement, agreement_vectors

Values = NDArray[np.float64]
# The parts of a setup, and the keys of the protocol that are such a part.
PARTS = {
    "data set": DATA_SET,
    "backbone": ("backbone", "weights_sha256"),
    "batch size": ("batch_size",),
}
# What each data set may have of its own, and settings of one data set must not differ in.
OWN = ("threshold", "max_samples")
# How often the orderings of a setting are halved.
HALVINGS, SEED = 20, 0


@dataclass
class Experiments:
    """Rankings of methods that are compared within groups, whose setups differ in one part alone.

    Attributes:
        outcomes: Restricted samples of each experiment, `[methods]`, lower is better.
        groups: The group of each.
        units: What is left out together to see how much hangs on it.
    """

    outcomes: list[Values] = field(default_factory=list)
    groups: list[Hashable] = field(default_factory=list)
    units: list[Hashable] = field(default_factory=list)

    def add(self, outcome: Values, group: Hashable, unit: Hashable) -> None:
        """Add an experiment."""
        self.outcomes.append(outcome)
        self.groups.append(group)
        self.units.append(unit)

    def describe(self, part: str) -> dict[str, Any]:
        """Give the stability, its interval by the jackknife over units, and how many pairs were compared.

        Args:
            part: What differs within groups.
        """
        found, ends = MeanAgreement(), (float("nan"), float("nan"))
        if self.outcomes:
            vectors, defined = agreement_vectors(np.stack(self.outcomes), TIES)
            groups, units = (_numbers(each) for each in (self.groups, self.units))
            found = _agreement(vectors, defined, groups)
            without = [
                _agreement(vectors[units != unit], defined[units != unit], groups[units != unit]).mean
                for unit in range(units.max() + 1)
            ]
            if found.mean is not None:
                low, high = jackknife_interval(found.mean, np.array(without, dtype=np.float64))
                ends = float(np.maximum(low, -1.0)), float(np.minimum(high, 1.0))
        return {"part": part, "stability": found.mean, "interval": interval_if_known(*ends), "compared": found.pairs}


def _numbers(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return np.array([places[label] for label in labels])


def _agreement(vectors: Values, defined: NDArray[np.bool_], groups: NDArray[np.intp]) -> MeanAgreement:
    found = MeanAgreement()
    if len(groups):
        sums = np.zeros((groups.max() + 1, vectors.shape[1]))
        np.add.at(sums, groups, vectors)
        found.add(sums, np.bincount(groups, weights=defined).astype(np.int64))
    return found


def describe_setup_stability(scored: Sequence[Scored], grids: Sequence[list[Cell]]) -> dict[str, Any] | None:
    """Give `setup_stability` as it stands in `leaderboard.json`; None where fewer than two methods are in all settings.

    Args:
        scored: The settings.
        grids: Their traces read by all criteria.
    """
    methods, _ = common_methods(scored)
    if len(methods) < 2:
        return None
    rows = [[each.names.index(name) for name in methods] for each in scored]
    restricted = [each.restricted[its] for each, its in zip(scored, rows, strict=True)]
    over = {part: _over_settings(scored, restricted, part) for part in PARTS}
    read = [
        # Where traces are undecided all are cut, at another place for each criterion, which moves the ranking as well.
        [(cell, cell.values[its]) for cell in cells if cell.values is not None and not cell.undecided]
        for cells, its in zip(grids, rows, strict=True)
    ]
    over |= {part: _over_criteria(read, by) for by, part in enumerate(("evaluations", "threshold"))}
    over |= {"ordering": _over_orderings(restricted), "half of the orderings": _over_halves(restricted)}
    return {"methods": methods, "parts": [experiments.describe(part) for part, experiments in over.items()]}


def _over_settings(scored: Sequence[Scored], restricted: Sequence[Values], part: str) -> Experiments:
    """Compare settings that differ in one part alone."""
    varied, compared = PARTS[part], scored
    keys = dict.fromkeys((*chain(*PARTS.values()), *CHOICES))
    keys |= dict.fromkeys(differing_within([each.protocol for each in scored], list(keys)))
    if varied == DATA_SET:
        keys = dict.fromkeys(key for key in keys if key not in OWN)
        compared, _ = one_of_each(scored, list(keys))
    names = {each.setting.name for each in compared}
    fixed = [key for key in keys if key not in varied]
    found = Experiments()
    for each, values in zip(scored, restricted, strict=True):
        if each.setting.name in names:
            found.add(values.mean(1), values_of(each.protocol, fixed), values_of(each.protocol, varied))
    return found


def _over_criteria(read: Sequence[Sequence[tuple[Cell, Values]]], by: int) -> Experiments:
    """Compare criteria that differ in the streak length, or in the threshold, alone."""
    found = Experiments()
    for place, cells in enumerate(read):
        for cell, values in cells:
            found.add(values.mean(1), (place, (cell.threshold, cell.consecutive)[by]), place)
    return found


def _over_orderings(restricted: Sequence[Values]) -> Experiments:
    """Compare single orderings of a setting."""
    found = Experiments()
    for place, values in enumerate(restricted):
        for each in values.T:
            found.add(each, place, place)
    return found


def _over_halves(restricted: Sequence[Values]) -> Experiments:
    """Compare halves of the orderings of a setting."""
    found = Experiments()
    generator = np.random.default_rng(SEED)
    for place, values in enumerate(restricted):
        half = values.shape[1] // 2
        for halving in range(HALVINGS if half else 0):
            order = generator.permutation(values.shape[1])
            found.add(values[:, order[:half]].mean(1), (place, halving), place)
            found.add(values[:, order[half : 2 * half]].mean(1), (place, halving), place)
    return found

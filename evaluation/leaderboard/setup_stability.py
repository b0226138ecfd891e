"""Which part of the setup moves the ranking of methods most: setup stability, applied to this benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.leaderboard.over_settings import common_methods, differing_within, values_of
from evaluation.leaderboard.rows import Scored
from evaluation.leaderboard.sensitivity import TIES, Cell
from metrics.ranking.outcome_agreement import MeanAgreement, agreement_vectors

Values = NDArray[np.float64]
# The parts of a setup, and the keys of the protocol that are such a part.
PARTS = {
    "data set": ("dataset",),
    "backbone": ("backbone", "weights_sha256"),
    "batch size": ("batch_size",),
}
CRITERION = ("threshold", "consecutive")


def describe_setup_stability(scored: Sequence[Scored], grids: Sequence[list[Cell]]) -> dict[str, Any] | None:
    """Give `setup_stability` as it stands in `leaderboard.json`; None where fewer than two methods are in all settings.

    Args:
        scored: The settings.
        grids: Their traces read by all criteria.
    """
    methods, _ = common_methods(scored)
    if len(methods) < 2:
        return None
    outcomes = [_outcome(each.restricted.mean(1), each, methods) for each in scored]
    parts = [(part, _over_settings(scored, outcomes, keys)) for part, keys in PARTS.items()]
    for key in CRITERION:
        parts.append(("evaluations" if key == "consecutive" else key, _over_criteria(scored, grids, methods, key)))
    parts.append(("ordering", _over_orderings(scored, methods)))
    return {
        "methods": methods,
        "parts": [
            {"part": part, "stability": found.mean, "interval": None, "compared": found.pairs} for part, found in parts
        ],
    }


def _outcome(values: Values, scored: Scored, methods: Sequence[str]) -> Values:
    return values[[scored.names.index(name) for name in methods]]


def _agreement(groups: Sequence[Sequence[Values]]) -> MeanAgreement:
    """Give the mean agreement within groups of outcomes `[methods]`."""
    found = MeanAgreement()
    for group in groups:
        vectors, defined = agreement_vectors(np.stack(group), TIES)
        found.add(vectors.sum(0)[None], np.array([defined.sum()]))
    return found


def _over_settings(scored: Sequence[Scored], outcomes: Sequence[Values], varied: Sequence[str]) -> MeanAgreement:
    """Compare settings that differ in one part alone."""
    parts = [*chain(*PARTS.values()), *CRITERION]
    fixed = [key for key in (*parts, *differing_within(scored, parts)) if key not in varied]
    groups: dict[tuple[str, ...], list[Values]] = {}
    for each, outcome in zip(scored, outcomes, strict=True):
        groups.setdefault(values_of(each, fixed), []).append(outcome)
    return _agreement(list(groups.values()))


def _over_criteria(
    scored: Sequence[Scored], grids: Sequence[list[Cell]], methods: Sequence[str], varied: str
) -> MeanAgreement:
    """Compare criteria that differ in the threshold, or in the streak length, alone."""
    groups: dict[tuple[int, Any], list[Values]] = {}
    for place, (each, cells) in enumerate(zip(scored, grids, strict=True)):
        for cell in cells:
            if cell.values is not None:
                fixed = cell.consecutive if varied == "threshold" else cell.threshold
                groups.setdefault((place, fixed), []).append(_outcome(cell.values.mean(1), each, methods))
    return _agreement(list(groups.values()))


def _over_orderings(scored: Sequence[Scored], methods: Sequence[str]) -> MeanAgreement:
    """Compare single orderings of a setting."""
    found = MeanAgreement()
    for each in scored:
        values = each.restricted[[each.names.index(name) for name in methods]].T
        vectors, defined = agreement_vectors(values, TIES)
        found.add(vectors.sum(0)[None], np.array([defined.sum()]))
    return found

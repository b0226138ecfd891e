"""Candidates, sources of one target or targets of one source, ranked by several metrics at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

SAME = 1e-10


@dataclass(frozen=True)
class Ranking:
    """Candidates, best first.

    Attributes:
        names: Names of the candidates, by their mean rank.
        ranks: Rank of each candidate by every metric that ranks them, 1 being the best; equals share the mean of
            theirs. A metric that gives all the same score, or one of them none, is not there.
        mean_ranks: Mean of each candidate's ranks; None where no metric ranks them.
    """

    names: list[str]
    ranks: dict[str, dict[str, float]]
    mean_ranks: dict[str, float | None]


def rank(scores: Mapping[str, Mapping[str, float | None]], baselines: Collection[str] = ()) -> Ranking:
    """Rank candidates; those of the same mean rank stay in the order given.

    Args:
        scores: Scores by candidate and metric, of the same metrics for all; higher is better, None is missing.
        baselines: Metrics that have no part in the mean.
    """
    ranks: dict[str, dict[str, float]] = {}
    for metric in next(iter(scores.values())):
        known = [value for found in scores.values() if (value := found[metric]) is not None]
        places = [_place(value, known) for value in known]
        if len(known) == len(scores) and len(set(places)) > 1:
            ranks[metric] = dict(zip(scores, places, strict=True))
    counted = [found for metric, found in ranks.items() if metric not in baselines]
    means = {name: sum(found[name] for found in counted) / len(counted) if counted else None for name in scores}
    return Ranking(sorted(scores, key=lambda name: means[name] or 0.0), ranks, means)


def _place(value: float, values: Sequence[float]) -> float:
    equal = sum(_same(other, value) for other in values)
    better = sum(other > value and not _same(other, value) for other in values)
    return better + (equal + 1) / 2


def _same(one: float, other: float) -> bool:
    """Tell whether scores are equal up to rounding errors."""
    return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME)

"""The sources of one target, ranked by every metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.sources.scores import Score

SAME = 1e-10


@dataclass(frozen=True)
class Ranking:
    """The sources of one target, best first.

    Attributes:
        sources: Names of the sources, by their mean rank.
        ranks: Rank of each source by every metric that ranks the sources, 1 being the best; equals share the mean of
            theirs. A metric that gives all the same score, or one of them none, is not there.
        mean_ranks: Mean of each source's ranks; None where no metric ranks the sources.
    """

    sources: list[str]
    ranks: dict[str, dict[str, float]]
    mean_ranks: dict[str, float | None]


def rank_sources(scores: Mapping[str, Mapping[str, Score]]) -> Ranking:
    """Rank the sources of one target.

    Args:
        scores: Scores by source and metric, of the same metrics for all sources.

    Returns:
        The ranking; sources of the same mean rank stay in the order given.
    """
    ranks: dict[str, dict[str, float]] = {}
    for metric in next(iter(scores.values())):
        known = [value for found in scores.values() if (value := found[metric].value) is not None]
        places = [_rank(value, known) for value in known]
        if len(known) == len(scores) and len(set(places)) > 1:
            ranks[metric] = dict(zip(scores, places, strict=True))
    means = {
        source: sum(found[source] for found in ranks.values()) / len(ranks) if ranks else None for source in scores
    }
    return Ranking(sorted(scores, key=lambda source: means[source] or 0.0), ranks, means)


def _rank(value: float, values: Sequence[float]) -> float:
    equal = sum(_same(other, value) for other in values)
    better = sum(other > value and not _same(other, value) for other in values)
    return better + (equal + 1) / 2


def _same(one: float, other: float) -> bool:
    """Tell whether scores are equal up to rounding errors."""
    return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME)

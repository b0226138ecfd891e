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
            theirs. Metrics that score all candidates the same, or one not at all, are left out.
        mean_ranks: Mean of each candidate's ranks; None where no metric ranks them.
    """

    names: list[str]
    ranks: dict[str, dict[str, float]]
    mean_ranks: dict[str, float | None]


def rank(scores: Mapping[str, Mapping[str, float | None]], baselines: Collection[str] = ()) -> Ranking:
    """Rank candidates; those of the same mean rank stay in their order.

    Args:
        scores: Scores by candidate and metric, of the same metrics for all; higher is better, None is missing.
        baselines: Metrics that do not count in the mean.
    """
    ranks: dict[str, dict[str, float]] = {}
    for metric in next(iter(scores.values())):
        known = [value for by_metric in scores.values() if (value := by_metric[metric]) is not None]
        ranked = [_rank(value, known) for value in known]
        if len(known) == len(scores) and len(set(ranked)) > 1:
            ranks[metric] = dict(zip(scores, ranked, strict=True))

    counted = [by_name for metric, by_name in ranks.items() if metric not in baselines]
    means = {name: sum(each[name] for each in counted) / len(counted) if counted else None for name in scores}
    return Ranking(sorted(scores, key=lambda name: means[name] or 0.0), ranks, means)


def _rank(value: float, values: Sequence[float]) -> float:
    """Return the rank of a value; values that are equal up to rounding errors share the mean of their ranks."""
    equal = [math.isclose(other, value, rel_tol=SAME, abs_tol=SAME) for other in values]
    better = sum(other > value and not same for other, same in zip(values, equal, strict=True))
    return better + (sum(equal) + 1) / 2

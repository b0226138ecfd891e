"""Scores of candidates, sources of one target or targets of one source, with their ranks and certain differences."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.sources.scores import Metrics, Score
from headstart.evaluation.sources.targets import Target
from headstart.metrics.arrays import Flags
from headstart.metrics.sample_efficiency.resolution import group_letters, maximal_groups
from headstart.metrics.transferability.left_out import significant_differences

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


def rank(scores: Mapping[str, Mapping[str, float | None]], uncounted: Collection[str] = ()) -> Ranking:
    """Rank candidates; those of the same mean rank stay in their order.

    Args:
        scores: Scores by candidate and metric, of the same metrics for all; higher is better, None is missing.
        uncounted: Metrics that do not count in the mean.
    """
    table = pd.DataFrame(scores, dtype=np.float64).T
    values = table.to_numpy()

    # Those that are equal up to rounding errors share the mean of their ranks.
    same = np.isclose(values[:, None], values, rtol=SAME, atol=SAME)
    better = (values > values[:, None]) & ~same
    numbers = better.sum(axis=1) + (same.sum(axis=1) + 1) / 2

    ranking = np.isfinite(values).all(axis=0) & (numbers != numbers[0]).any(axis=0)
    ranks = pd.DataFrame(numbers, table.index, table.columns).loc[:, ranking]
    counted = ranks.drop(columns=[*uncounted], errors="ignore")
    means = counted.mean(axis=1).to_dict() if counted.size else dict.fromkeys(scores)
    return Ranking(sorted(scores, key=lambda name: means[name] or 0.0), ranks.to_dict(), means)


@dataclass(frozen=True)
class Certainty:
    """Significant differences between sources by one metric.

    Attributes:
        sources: The sources, the best by this metric first.
        differ: Which differ significantly, `[sources, sources]`.
    """

    sources: Sequence[str]
    differ: Flags

    @property
    def groups(self) -> list[list[str]]:
        """The largest sets of sources without a significant difference; none where there are too many to name."""
        return [[self.sources[index] for index in group] for group in maximal_groups(self.differ)]

    @property
    def letters(self) -> dict[str, str]:
        """A letter for each set that a source is in, by source; after z come capitals, then numbers."""
        letters = group_letters(maximal_groups(self.differ), len(self.sources))
        return dict(zip(self.sources, letters, strict=True))

    def compare(self, one: str, other: str) -> int:
        """Return 1 where the first is significantly better, -1 where it is worse, and 0 where they do not differ."""
        first, second = self.sources.index(one), self.sources.index(other)
        return (1 if first < second else -1) if self.differ[first, second] else 0


def find_certainty(scores: Mapping[str, Mapping[str, Score]], metric: str) -> Certainty | None:
    """Test the differences between sources by one metric.

    Args:
        scores: Scores by source and metric.
        metric: The metric.

    Returns:
        None where a source has no interval, or there is one source alone.
    """
    by_source = {source: by_metric[metric] for source, by_metric in scores.items()}
    scored = {source: score.value for source, score in by_source.items() if score.value is not None and score.left_out}
    if len(scored) < max(len(scores), 2):
        return None
    names = sorted(scored, key=lambda source: -scored[source])
    left_out, starts = (np.array([getattr(by_source[name], kind) for name in names]) for kind in ("left_out", "starts"))
    return Certainty(names, significant_differences(np.array([scored[name] for name in names]), left_out, starts))


@dataclass(frozen=True)
class ScoredCandidates:
    """Candidates with their scores.

    Attributes:
        metrics: The metrics by name.
        scores: Scores by candidate and metric.
        performances: Known performances by candidate.
        warnings: Warnings of some of these performances, by candidate.
    """

    metrics: Metrics
    scores: Mapping[str, Mapping[str, Score]]
    performances: Mapping[str, float]
    warnings: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @cached_property
    def ranking(self) -> Ranking:
        """The candidates, ranked by every metric; baselines and saturated metrics do not count in the mean."""
        values = {
            name: {metric: score.value for metric, score in scores.items()} for name, scores in self.scores.items()
        }
        return rank(values, [*self.saturated, *(name for name, metric in self.metrics.items() if metric.baseline)])

    @cached_property
    def saturated(self) -> dict[str, list[str]]:
        """The candidates that have the highest possible score, by saturated metric.

        Two or more of them saturate a metric: it cannot tell which is the best. Enough features can reach a score
        whatever the labels. Such a score saturates the metric with one candidate. It counts, too, if it is only reached
        with any part of the photos left out.
        """
        saturated = {}
        for metric, entry in self.metrics.items():
            by_features = entry.features_reach_bound
            scores = {name: by_metric[metric] for name, by_metric in self.scores.items()}
            names = [
                name for name, score in scores.items() if score.at_bound or (by_features and score.left_out_at_bound)
            ]
            if len(names) > 1 or (names and by_features):
                saturated[metric] = names
        return saturated

    def missing(self, metric: str) -> dict[str, list[str]]:
        """Return the candidates without a score by a metric, by the reason."""
        by_name = {name: scores[metric] for name, scores in self.scores.items()}
        return grouped((score.reason, name) for name, score in by_name.items() if score.value is None)

    def rows(self, source: str | None = None, target: str | None = None) -> list[list[Any]]:
        """Return the rows of the plain table with the ends of intervals, under `SOURCE_COLUMNS`; None is an empty cell.

        Args:
            source: The source, where the candidates are targets.
            target: The target, where the candidates are sources.
        """
        return [
            [
                *(metric, source or name, target or name),
                *(score.value, self.performances.get(name), score.seconds, self.warnings.get(name)),
                *(score.interval or (None, None)),
            ]
            for name, scores in self.scores.items()
            for metric, score in scores.items()
        ]


@dataclass(frozen=True)
class RankedSources(ScoredCandidates):
    """Sources with their scores on one target.

    Attributes:
        target: The target.
    """

    target: Target

    @cached_property
    def certainties(self) -> dict[str, Certainty]:
        """Significant differences of the sources, by the metrics of which all sources have an interval.

        Saturated metrics have none.
        """
        certainties = {name: find_certainty(self.scores, name) for name in self.metrics if name not in self.saturated}
        return {name: certainty for name, certainty in certainties.items() if certainty is not None}

    def describe_score(self, source: str, metric: str) -> dict[str, Any]:
        """Return a score as JSON values."""
        score = self.scores[source][metric]
        return {
            "score": score.value,
            "rank": self.ranking.ranks.get(metric, {}).get(source),
            "seconds": score.seconds,
            "reason": score.reason or None,
            "interval": list(score.interval) if score.interval else None,
            "no_interval": score.uncertain or None,
            "left_out": list(score.left_out),
            **({"starts": list(score.starts)} if score.starts else {}),
            **({"terms": list(score.terms)} if score.terms else {}),
        }

    def describe(self) -> dict[str, Any]:
        """Return the sources, ranked, as JSON values."""
        return {
            "scores": {
                name: {metric: self.describe_score(name, metric) for metric in self.metrics} for name in self.scores
            },
            "mean_ranks": self.ranking.mean_ranks,
            "saturated": self.saturated,
            "groups": {metric: certainty.groups for metric, certainty in self.certainties.items()},
            "performances": dict(self.performances),
            "performance_warnings": dict(self.warnings),
            "repeated_photos": self.target.repeated,
        }


def describe_ranking(results: Sequence[RankedSources]) -> dict[str, Any]:
    """Return the sources of all targets, ranked, as JSON values by target."""
    described = {result.target.name: result.describe() for result in results}
    return {key: {name: its[key] for name, its in described.items()} for key in next(iter(described.values()))}

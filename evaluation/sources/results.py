"""Scores of candidates: sources of one target, or targets of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headstart.evaluation.sources.certainty import Certainty, find_certainty
from headstart.evaluation.sources.scores import Metrics, Score
from headstart.evaluation.sources.targets import Target
from headstart.metrics.ranking.mean_ranks import Ranking, rank


@dataclass(frozen=True)
class Scored:
    """Candidates with their scores.

    Attributes:
        metrics: The metrics by name.
        scores: Scores by candidate and metric.
        performances: Known performances by candidate.
    """

    metrics: Metrics
    scores: Mapping[str, Mapping[str, Score]]
    performances: Mapping[str, float]

    @cached_property
    def ranking(self) -> Ranking:
        """The candidates, ranked by every metric; a baseline does not count in the mean."""
        values = {
            name: {metric: score.value for metric, score in scores.items()} for name, scores in self.scores.items()
        }
        return rank(values, [name for name, metric in self.metrics.items() if metric.baseline])

    @cached_property
    def tied(self) -> dict[str, float]:
        """The score that is the same for all candidates up to rounding errors, by metric without baselines."""
        tied = {}
        for name, metric in self.metrics.items():
            values = [scores[name].value for scores in self.scores.values()]
            is_ranked = name in self.ranking.ranks or metric.baseline
            if len(values) > 1 and not is_ranked and values[0] is not None and None not in values:
                tied[name] = values[0]
        return tied

    def missing(self, metric: str) -> dict[str, list[str]]:
        """Return the candidates without a score by a metric, by the reason."""
        missing: dict[str, list[str]] = {}
        for name, scores in self.scores.items():
            if scores[metric].value is None:
                missing.setdefault(scores[metric].reason, []).append(name)
        return missing

    def rows(self, source: str | None = None, target: str | None = None) -> list[list[Any]]:
        """Return the rows of the plain table under `SCORE_COLUMNS`; None stands for an empty cell.

        Args:
            source: The source, where the candidates are targets.
            target: The target, where the candidates are sources.
        """
        return [
            [metric, source or name, target or name, score.value, self.performances.get(name), score.seconds]
            for name, scores in self.scores.items()
            for metric, score in scores.items()
        ]


@dataclass(frozen=True)
class RankedSources(Scored):
    """Sources with their scores on one target.

    Attributes:
        target: The target.
        features_seconds: Time in which features were computed or read, by source.
    """

    target: Target
    features_seconds: Mapping[str, float]

    @cached_property
    def certainties(self) -> dict[str, Certainty]:
        """Significant differences of the sources, by the metrics of which all sources have an interval."""
        certainties = {name: find_certainty(self.scores, name) for name in self.metrics}
        return {name: certainty for name, certainty in certainties.items() if certainty is not None}

    def interval_rows(self) -> list[list[Any]]:
        """Return the rows of the plain table with the ends of the intervals, under `SOURCE_COLUMNS`."""
        scores = [score for by_metric in self.scores.values() for score in by_metric.values()]
        plain = self.rows(target=self.target.name)
        return [[*row, *(score.interval or (None, None))] for row, score in zip(plain, scores, strict=True)]

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
            **({"terms": list(score.terms)} if score.terms else {}),
            "left_out_seconds": score.left_out_seconds,
        }


def describe_ranking(results: Sequence[RankedSources]) -> dict[str, Any]:
    """Return the sources of all targets, ranked, as JSON values by target."""
    ranked = {each.target.name: each for each in results}
    return {
        "scores": {
            name: {
                source: {metric: each.describe_score(source, metric) for metric in each.metrics}
                for source in each.scores
            }
            for name, each in ranked.items()
        },
        "mean_ranks": {name: dict(each.ranking.mean_ranks) for name, each in ranked.items()},
        "groups": {
            name: {metric: certainty.groups for metric, certainty in each.certainties.items()}
            for name, each in ranked.items()
        },
        "performances": {name: dict(each.performances) for name, each in ranked.items()},
        "repeated_photos": {name: each.target.repeated for name, each in ranked.items()},
        "features_seconds": {name: dict(each.features_seconds) for name, each in ranked.items()},
    }

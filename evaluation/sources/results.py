"""What the metrics say of candidates: sources of one target, or targets of one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headstart.evaluation.sources.certainty import Certainty, find_certainty
from headstart.evaluation.sources.scores import Metrics, Score
from headstart.evaluation.sources.targets import Target
from headstart.metrics.ranking.mean_ranks import Ranking, rank


@dataclass(frozen=True)
class Scored:
    """Candidates, with what the metrics say of each.

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
        """The candidates, ranked by every metric; a baseline has no part in the mean."""
        values = {name: {metric: score.value for metric, score in found.items()} for name, found in self.scores.items()}
        return rank(values, [name for name, metric in self.metrics.items() if metric.baseline])

    @cached_property
    def tied(self) -> dict[str, float]:
        """The score that a metric gives all candidates, up to rounding errors, by metric; baselines are left out."""
        found = {}
        for name, metric in self.metrics.items():
            [first, *others] = [scores[name].value for scores in self.scores.values()]
            ranked = name in self.ranking.ranks or metric.baseline
            if others and not ranked and first is not None and None not in others:
                found[name] = first
        return found

    def missing(self, metric: str) -> dict[str, list[str]]:
        """Say of which candidates a metric has no score, by the reason."""
        found: dict[str, list[str]] = {}
        for name, scores in self.scores.items():
            if scores[metric].value is None:
                found.setdefault(scores[metric].reason, []).append(name)
        return found

    def rows(self, source: str | None = None, target: str | None = None) -> list[list[Any]]:
        """Give the rows of the plain table under `SCORE_COLUMNS`; None stands for an empty cell.

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
    """What the metrics say of the sources on one target.

    Attributes:
        target: The target.
        weights: SHA-256 of the loaded weights, by source.
        features_seconds: Time in which features were computed or read, by source.
    """

    target: Target
    weights: Mapping[str, str]
    features_seconds: Mapping[str, float]

    @cached_property
    def certainties(self) -> dict[str, Certainty]:
        """What the photos tell of the sources, by the metrics of which all sources have an interval."""
        found = {name: find_certainty(self.scores, name) for name in self.metrics}
        return {name: each for name, each in found.items() if each is not None}

    def interval_rows(self) -> list[list[Any]]:
        """Give the rows of the plain table with the ends of the intervals, under `SOURCE_COLUMNS`."""
        scores = [score for found in self.scores.values() for score in found.values()]
        plain = self.rows(target=self.target.name)
        return [[*row, *(score.interval or (None, None))] for row, score in zip(plain, scores, strict=True)]

    def describe_scores(self) -> dict[str, dict[str, Any]]:
        """Describe the scores as JSON values, by source and metric."""
        return {
            source: {
                metric: {
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
                for metric, score in scores.items()
            }
            for source, scores in self.scores.items()
        }

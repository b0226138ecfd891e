"""What the metrics say of all sources on all targets, as a table and as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluation.sources.scores import Metrics, Score
from evaluation.sources.targets import Split, Target
from metrics.ranking.mean_ranks import Ranking, rank


@dataclass(frozen=True)
class Scored:
    """Candidates, sources of one target or targets of one source, with what the metrics say of each.

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

    def missing(self, metric: str) -> dict[str, list[str]]:
        """Say of which candidates a metric has no score.

        Args:
            metric: Its name.

        Returns:
            The candidates by the reason.
        """
        found: dict[str, list[str]] = {}
        for name, scores in self.scores.items():
            if scores[metric].value is None:
                found.setdefault(scores[metric].reason, []).append(name)
        return found


@dataclass(frozen=True)
class RankedSources(Scored):
    """What the metrics say of the sources on one target.

    Attributes:
        target: The target.
        features_seconds: Time in which features were computed or read, by source.
    """

    target: Target
    features_seconds: Mapping[str, float]

    def describe_scores(self) -> dict[str, dict[str, Any]]:
        """Describe the scores as JSON values, by source and metric."""
        return {
            source: {
                metric: {
                    "score": score.value,
                    "rank": self.ranking.ranks.get(metric, {}).get(source),
                    "seconds": score.seconds,
                    "reason": score.reason or None,
                }
                for metric, score in scores.items()
            }
            for source, scores in self.scores.items()
        }


def describe_target(target: Target) -> dict[str, Any]:
    """Describe a target as JSON values.

    Args:
        target: The target.

    Returns:
        What its photos are, and how many.
    """
    return {
        "dataset": target.dataset,
        "photos": len(target.photos),
        "classes": list(target.photos.classes),
        "fingerprint": target.fingerprint,
    }


@dataclass(frozen=True)
class Results:
    """What the metrics say of the sources on all targets.

    Attributes:
        metrics: The metrics by name.
        split: Which photos of the targets were taken.
        targets: What they say on each.
    """

    metrics: Metrics
    split: Split
    targets: Sequence[RankedSources]

    def rows(self) -> list[list[Any]]:
        """Give the rows of the plain table under `SCORE_COLUMNS`; None stands for an empty cell."""
        return [
            [metric, source, found.target.name, score.value, found.performances.get(source), score.seconds]
            for found in self.targets
            for source, scores in found.scores.items()
            for metric, score in scores.items()
        ]

    def document(self) -> dict[str, Any]:
        """Describe all of it as JSON values, by target, at full precision."""
        named = [(found.target.name, found) for found in self.targets]
        return {
            "metrics": list(self.metrics),
            "split": self.split,
            "targets": {name: describe_target(found.target) for name, found in named},
            "scores": {name: found.describe_scores() for name, found in named},
            "mean_ranks": {name: dict(found.ranking.mean_ranks) for name, found in named},
            "performances": {name: dict(found.performances) for name, found in named},
            "features_seconds": {name: dict(found.features_seconds) for name, found in named},
        }

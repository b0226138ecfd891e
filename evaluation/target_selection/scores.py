"""Scores of one source model on many targets that are made of classes of one data set."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.sources.scores import Metrics, Score, compare_with_bound, score_one
from headstart.metrics.transferability.catalogue import TransferabilityMetric
from headstart.metrics.transferability.inputs import Inputs
from headstart.output.progress import track


def score_targets(whole: Inputs, targets: Sequence[NDArray[np.int64]], metrics: Metrics) -> list[dict[str, Score]]:
    """Compute metrics of all targets, by name and of each target.

    Every metric ranks targets with the best first: one whose lower scores are better has its sign reversed. The time of
    a metric includes shared statistics that it is the first to need.

    Args:
        whole: The inputs of the data set.
        targets: Labels of the classes of each target.
        metrics: The metrics by name.
    """
    scores = []
    for classes in track(targets, "metrics", "targets"):
        inputs = whole.subset(np.isin(whole.labels, classes))
        found = {name: score_one(metric.evaluate, inputs) for name, metric in metrics.items()}
        scores.append({name: _comparable(found[name], metric, len(classes)) for name, metric in metrics.items()})
    return scores


def _comparable(score: Score, metric: TransferabilityMetric, classes: int) -> Score:
    """Reverse the sign of a score whose lower values are better, and compare the others with their bound."""
    if metric.higher_is_better or score.value is None:
        return compare_with_bound(score, metric, classes)
    return replace(score, value=-score.value)

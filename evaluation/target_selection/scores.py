"""Scores of one source model on many targets that are made of classes of one data set."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from headstart.evaluation.sources.scores import Metrics, Score, compare_with_bound, score_jointly, score_one
from headstart.metrics.arrays import Floats
from headstart.metrics.transferability.catalogue import TransferabilityMetric
from headstart.metrics.transferability.inputs import Pool
from headstart.metrics.transferability.joint_scores import gbc_of_targets
from headstart.output.progress import track

GbcAxes = Literal["dataset", "target", "features"]
POOLED_GBC: dict[GbcAxes, Callable[[Pool], Floats] | None] = {
    "dataset": gbc_of_targets,
    "target": None,
    "features": partial(gbc_of_targets, pca=None),
}


def score_targets(pool: Pool, metrics: Metrics, gbc_axes: GbcAxes = "dataset") -> list[dict[str, Score]]:
    """Compute metrics of all targets, by name and of each target.

    Every metric ranks targets with the best first: one whose lower scores are better has its sign reversed. The time of
        a metric has two parts: its share of computations for all targets, and its own for the target. The latter
        includes shared statistics that it is the first to need.

    Args:
        pool: The targets.
        metrics: The metrics by name.
        gbc_axes: Coordinates in which GBC measures the overlap of classes. They are the principal components of the
            whole `dataset` or of each `target`, or all `features`.
    """
    if "gbc" in metrics:
        metrics = {**metrics, "gbc": replace(metrics["gbc"], pooled=POOLED_GBC[gbc_axes])}
    scores: list[dict[str, Score]] = [{} for _ in pool.targets]
    for name, metric in metrics.items():
        if metric.pooled is not None:
            for target, score in zip(scores, score_jointly(partial(metric.pooled, pool), len(scores)), strict=True):
                target[name] = score

    alone = {name: metric.evaluate if metric.pooled is None else metric.pooled_rest for name, metric in metrics.items()}
    computes = {name: compute for name, compute in alone.items() if compute is not None}
    if computes:
        for target, classes in zip(scores, track(pool.targets, "metrics", "targets"), strict=True):
            inputs = pool.inputs(classes)
            for name, compute in computes.items():
                score = score_one(compute, inputs)
                target[name] = _add(target[name], score) if name in target else score

    return [
        {name: _comparable(target[name], metric, len(classes)) for name, metric in metrics.items()}
        for target, classes in zip(scores, pool.targets, strict=True)
    ]


def _comparable(score: Score, metric: TransferabilityMetric, classes: int) -> Score:
    """Reverse the sign of a score whose lower values are better, and compare the others with their bound."""
    if metric.higher_is_better or score.value is None:
        return compare_with_bound(score, metric, classes)
    return replace(score, value=-score.value)


def _add(one: Score, other: Score) -> Score:
    seconds = one.seconds + other.seconds
    if one.value is None or other.value is None:
        return Score(None, seconds, one.reason or other.reason)
    return Score(one.value + other.value, seconds)

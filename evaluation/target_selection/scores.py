"""All metrics of one source model on many targets that are made of classes of one data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.sources.scores import Metrics, Score, score_jointly, score_one
from headstart.metrics.transferability.catalogue import Pooled
from headstart.metrics.transferability.inputs import Inputs, Pool
from headstart.metrics.transferability.joint_scores import gbc_of_targets
from headstart.output.progress import track

GbcAxes = Literal["dataset", "target", "features"]
POOLED_GBC: dict[GbcAxes, Pooled | None] = {
    "dataset": Pooled(gbc_of_targets),
    "target": None,
    "features": Pooled(lambda pool: gbc_of_targets(pool, pca=None)),
}


def score_targets(pool: Pool, metrics: Metrics, gbc_axes: GbcAxes = "dataset") -> list[dict[str, Score]]:
    """Compute metrics of all targets, by name and of each target.

    Every metric ranks targets with the best first: one whose lower scores are better has its sign reversed. The time of
    a metric is its share of what is computed for all targets at once, and its own for the target, with what it is the
    first to need of the statistics that metrics share.

    Args:
        pool: The targets.
        metrics: The metrics by name.
        gbc_axes: Coordinates in which the classes of GBC overlap: the principal components of the whole `dataset`,
            those of each `target`, or all `features`.
    """
    if "gbc" in metrics:
        metrics = {**metrics, "gbc": replace(metrics["gbc"], pooled=POOLED_GBC[gbc_axes])}
    count = len(pool.targets)
    columns = {
        name: score_jointly(partial(metric.pooled.jointly, pool), count)
        for name, metric in metrics.items()
        if metric.pooled is not None
    }
    parts = {name: metric.compute if metric.pooled is None else metric.pooled.alone for name, metric in metrics.items()}
    alone = {name: part for name, part in parts.items() if part is not None}
    if alone:
        rows = [_score_target(pool, chosen, alone) for chosen in track(pool.targets, "metrics", "targets")]
        for name in alone:
            own = [row[name] for row in rows]
            columns[name] = list(map(_add, columns[name], own)) if name in columns else own
    for name, metric in metrics.items():
        if not metric.higher_is_better:
            columns[name] = [
                score if score.value is None else replace(score, value=-score.value) for score in columns[name]
            ]
    return [{name: columns[name][place] for name in metrics} for place in range(count)]


def _score_target(
    pool: Pool, chosen: NDArray[np.int64], parts: Mapping[str, Callable[[Inputs], float]]
) -> dict[str, Score]:
    given = pool.inputs(chosen)
    return {name: score_one(compute, given) for name, compute in parts.items()}


def _add(one: Score, other: Score) -> Score:
    seconds = one.seconds + other.seconds
    if one.value is None or other.value is None:
        return Score(None, seconds, one.reason or other.reason)
    return Score(one.value + other.value, seconds)

"""All metrics of one source model on many targets that are made of classes of one data set."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from evaluation.sources.scores import (
    COMPUTATIONS,
    Inputs,
    Metric,
    Score,
    require_probabilities,
    score_jointly,
    score_one,
)
from metrics.transferability.dataset_statistics import DatasetStatistics, TargetStatistics
from metrics.transferability.joint_scores import (
    coding_rate_of_samples,
    coding_rates_of_classes,
    gbc_of_targets,
    leep_of_targets,
    nce_of_targets,
)

GbcAxes = Literal["dataset", "target", "features"]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class TargetInputs:
    """What the metrics of one source model on all targets are computed from.

    Attributes:
        dataset: Statistics of the data set.
        labels: Classes of its photos, `[samples]`.
        probabilities: Of the source head's classes, `[samples, source classes]`; None where there is no head.
        targets: Classes of each target, by their places in `dataset.labels`, ascending.
    """

    dataset: DatasetStatistics
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None
    targets: Sequence[NDArray[np.int64]]


# Metrics, and the parts of some, that are computed for all targets at once.
JOINT: dict[Metric, Callable[[TargetInputs], Values]] = {
    # Every metric ranks targets with the best first, and fewer classes are easier.
    "num_classes": lambda given: np.array([-float(len(chosen)) for chosen in given.targets]),
    "leep": lambda given: leep_of_targets(
        require_probabilities(given.probabilities), given.labels, given.dataset, given.targets
    ),
    "nce": lambda given: nce_of_targets(require_probabilities(given.probabilities), given.dataset, given.targets),
}
JOINT_GBC: dict[GbcAxes, Callable[[TargetInputs], Values]] = {
    "dataset": lambda given: gbc_of_targets(given.dataset, given.targets),
    "features": lambda given: gbc_of_targets(given.dataset, given.targets, pca=None),
}


def score_targets(
    given: TargetInputs, metrics: Sequence[Metric], gbc_axes: GbcAxes = "dataset", seed: int = 0
) -> list[dict[Metric, Score]]:
    """Compute metrics of all targets.

    Args:
        given: What they are computed from.
        metrics: The metrics.
        gbc_axes: Coordinates in which the classes of GBC overlap: the principal components of the whole `dataset`,
            those of each `target`, or all `features`.
        seed: Of the metrics that draw.

    Returns:
        Scores by metric, of each target; NumC has its sign reversed. The time of a metric is its share of what is
        computed for all targets at once, and its own for the target, with what it is the first to need of the
        statistics that metrics share.
    """
    joint = JOINT | ({"gbc": JOINT_GBC[gbc_axes]} if gbc_axes in JOINT_GBC else {})
    count = len(given.targets)
    columns: dict[Metric, list[Score]] = {}
    for metric in metrics:
        if metric in joint:
            columns[metric] = score_jointly(lambda compute=joint[metric]: compute(given), count)  # type: ignore[misc]
    single = [metric for metric in metrics if metric not in joint]
    rates = None
    if "trans_rate" in single:
        rates = score_jointly(lambda: coding_rates_of_classes(given.dataset, given.targets), count)
    if single:
        watched = track(given.targets, "targets", transient=True, disable=not sys.stdout.isatty())
        rows = [_score_target(given.dataset, chosen, single, seed) for chosen in watched]
        columns |= {metric: [row[metric] for row in rows] for metric in single}
    if rates is not None:
        columns["trans_rate"] = [_subtract(*pair) for pair in zip(columns["trans_rate"], rates, strict=True)]
    return [{metric: columns[metric][place] for metric in metrics} for place in range(count)]


def _score_target(
    dataset: DatasetStatistics, chosen: NDArray[np.int64], metrics: Sequence[Metric], seed: int
) -> dict[Metric, Score]:
    """Compute what is of one target alone; of TransRate the coding rate of all its samples."""
    statistics = TargetStatistics(dataset, chosen)
    inputs = Inputs(statistics, None, statistics.labels, seed)
    computations = {**COMPUTATIONS, "trans_rate": lambda given: coding_rate_of_samples(given.statistics)}
    return {metric: score_one(computations[metric], inputs) for metric in metrics}


def _subtract(whole: Score, classes: Score) -> Score:
    seconds = whole.seconds + classes.seconds
    if whole.value is None or classes.value is None:
        return Score(None, seconds, whole.reason or classes.reason)
    return Score(whole.value - classes.value, seconds)

"""All metrics of one source model on one target, from one set of statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evaluation.sources.source_features import SourceFeatures
from metrics.transferability.feature_statistics import FeatureStatistics
from metrics.transferability.gbc import gbc
from metrics.transferability.h_score import h_score
from metrics.transferability.leep import leep, nce
from metrics.transferability.linear_probe import linear_probe_accuracy
from metrics.transferability.log_me import log_me
from metrics.transferability.n_leep import n_leep
from metrics.transferability.num_classes import num_classes
from metrics.transferability.trans_rate import trans_rate

Metric = Literal[
    "gbc",
    "leep",
    "n_leep",
    "log_me",
    "h_score",
    "h_score_shrunk",
    "nce",
    "trans_rate",
    "linear_probe",
    "num_classes",
]
METRICS: tuple[Metric, ...] = get_args(Metric)
# The probe, which the others are to stand in for, takes longer than all of them together.
DEFAULT_METRICS = tuple(metric for metric in METRICS if metric != "linear_probe")


@dataclass(frozen=True)
class Inputs:
    """What the metrics of one source model on one target are computed from.

    Attributes:
        statistics: Of the features, shared by all metrics.
        probabilities: Of the source head's classes, `[samples, source classes]`; None where there is no head.
        labels: Classes of the photos, `[samples]`.
        seed: Of the metrics that draw.
    """

    statistics: FeatureStatistics
    probabilities: NDArray[np.float64] | None
    labels: NDArray[np.int64]
    seed: int


def require_probabilities(given: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Give the probabilities of the source head's classes.

    Args:
        given: The probabilities, if there are any.

    Returns:
        The same.

    Raises:
        ValueError: There are none.
    """
    if given is None:
        msg = "the model has no source head, whose probabilities are needed"
        raise ValueError(msg)
    return given


COMPUTATIONS: dict[Metric, Callable[[Inputs], float]] = {
    "gbc": lambda given: gbc(given.statistics),
    "leep": lambda given: leep(require_probabilities(given.probabilities), given.labels),
    "n_leep": lambda given: n_leep(given.statistics, seed=given.seed),
    "log_me": lambda given: log_me(given.statistics),
    "h_score": lambda given: h_score(given.statistics),
    "h_score_shrunk": lambda given: h_score(given.statistics, shrinkage=True),
    "nce": lambda given: nce(require_probabilities(given.probabilities).argmax(1), given.labels),
    "trans_rate": lambda given: trans_rate(given.statistics),
    "linear_probe": lambda given: linear_probe_accuracy(given.statistics, seed=given.seed),
    "num_classes": lambda given: num_classes(given.labels),
}


@dataclass(frozen=True)
class Score:
    """A metric's score of one source model on one target.

    Attributes:
        value: The score; None where there is none.
        seconds: Time that it took, with what it was the first to need of the statistics that the metrics share.
        reason: Why there is no score; empty where there is one.
    """

    value: float | None
    seconds: float
    reason: str = ""


def score_source(
    found: SourceFeatures, labels: NDArray[np.int64], metrics: Sequence[Metric], seed: int
) -> dict[Metric, Score]:
    """Score one source model on one target.

    Args:
        found: What the model makes of the target's photos.
        labels: Classes of the photos, `[samples]`.
        metrics: The metrics.
        seed: Of the metrics that draw.

    Returns:
        Scores by metric. A metric that cannot be computed has none, and does not keep the others from theirs.
    """
    given = Inputs(FeatureStatistics(found.features, labels), found.probabilities(), labels, seed)
    return {metric: score_one(COMPUTATIONS[metric], given) for metric in metrics}


def score_one(computation: Callable[[Inputs], float], given: Inputs) -> Score:
    """Compute one score.

    Args:
        computation: The metric.
        given: What it is computed from.

    Returns:
        The score; none where the metric cannot be computed or is not finite.
    """
    return score_jointly(lambda: np.array([computation(given)]), 1)[0]


def score_jointly(compute: Callable[[], NDArray[np.float64]], count: int) -> list[Score]:
    """Compute scores of several targets at once, and share the time among them.

    Args:
        compute: Gives the scores, `[targets]`.
        count: Number of targets.

    Returns:
        The scores; none where they cannot be computed or are not finite.
    """
    start = time.perf_counter()
    try:
        values, reason = compute().tolist(), ""
    except ValueError as error:
        values, reason = [None] * count, str(error)
    seconds = (time.perf_counter() - start) / count
    return [
        Score(value, seconds, reason)
        if value is None or math.isfinite(value)
        else Score(None, seconds, f"the score is {value}")
        for value in values
    ]

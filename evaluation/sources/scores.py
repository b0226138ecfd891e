"""All metrics of one source model on one target, from one set of statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.transferability.catalogue import TransferabilityMetric
from metrics.transferability.inputs import Inputs

Metrics = Mapping[str, TransferabilityMetric]


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


def score_one(compute: Callable[[Inputs], float], given: Inputs) -> Score:
    """Compute one score by a metric or a part of it; none where it cannot be computed or is not finite."""
    return score_jointly(lambda: np.array([compute(given)]), 1)[0]


def score_jointly(compute: Callable[[], NDArray[np.float64]], count: int) -> list[Score]:
    """Compute scores of several targets at once, and share the time among them.

    Args:
        compute: Gives the scores, `[targets]`; those that are not finite, or all after a ValueError, are none.
        count: Number of targets.
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

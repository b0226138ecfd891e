"""All metrics of one source model on one target, from one set of statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.transferability.catalogue import TransferabilityMetric
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import SAME, interval
from headstart.output.progress import Progress

Metrics = Mapping[str, TransferabilityMetric]
ALONE = "it compares sources with each other, and there is one alone"


@dataclass(frozen=True)
class Score:
    """A metric's score of one source model on one target.

    Attributes:
        value: The score; None where there is none.
        seconds: Time that it took, with what it was the first to need of the statistics that the metrics share.
        reason: Why there is no score; empty where there is one.
        left_out: The score with each part of the photos left out, in the order of parts; empty where it was not
            computed, or cannot be for one of them.
        left_out_seconds: Time that these took, with what they were the first to need of shared statistics.
        uncertain: Why there is no interval; empty where there is one, and where none was asked for.
        terms: What the score follows from, together with those of the other sources; empty where it does not.
        left_out_terms: The same with each part of the photos left out.
    """

    value: float | None
    seconds: float
    reason: str = ""
    left_out: tuple[float, ...] = ()
    left_out_seconds: float = 0.0
    uncertain: str = ""
    terms: tuple[float, ...] = ()
    left_out_terms: tuple[tuple[float, ...], ...] = ()

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval over photos; None where there is none."""
        if self.value is None or not self.left_out:
            return None
        return interval(self.value, np.array(self.left_out))

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval, 0 where it is but rounding errors; None where there is none."""
        if self.interval is None:
            return None
        low, high = self.interval
        return 0.0 if math.isclose(low, high, rel_tol=SAME, abs_tol=SAME) else (high - low) / 2


def score_source(metrics: Metrics, given: Inputs, parts: NDArray[np.int64], progress: Progress) -> dict[str, Score]:
    """Compute all metrics of one source model on one target, and with each part of the photos left out.

    Of metrics that compare sources the scores have terms and no value, which `compare_sources` gives.

    Args:
        metrics: The metrics by name.
        given: What they are computed from.
        parts: The part of each photo, from 0, `[samples]`, -1 for those that are always kept; all -1 for no intervals.
        progress: Is told of every metric, and of every metric without each part.
    """
    computes = {name: _once_prepared(metric, given) for name, metric in metrics.items()}
    scores = {}
    for name, compute in computes.items():
        scores[name] = score_one(partial(compute, np.ones(len(parts), dtype=bool)), given)
        progress.advance()
    without: dict[str, list[Score]] = {name: [] for name in metrics}
    for part in range(parts.max() + 1):
        kept = parts != part
        rest = given.remaining(kept)
        for name, compute in computes.items():
            if not scores[name].reason and not metrics[name].baseline:
                without[name].append(score_one(partial(compute, kept[given.order]), rest))
            progress.advance()
    return {name: _with_left_out(scores[name], without[name]) for name in metrics}


def _once_prepared(metric: TransferabilityMetric, given: Inputs) -> Callable[[NDArray[np.bool_], Inputs], float]:
    """Give a function of which samples are kept and of what these are, that does once what can be done for all."""
    if metric.prepare is None:
        return lambda _, rest: metric.compute(rest)
    prepare = cache(metric.prepare)
    return lambda kept, _: prepare(given)(kept)


def _with_left_out(score: Score, without: list[Score]) -> Score:
    """Add to a score those without each part; none of them where one is missing."""
    seconds = sum(each.seconds for each in without)
    missing = [
        f"without part {part} of the photos: {each.reason}" for part, each in enumerate(without, 1) if each.reason
    ]
    if missing:
        return replace(score, left_out_seconds=seconds, uncertain=missing[0])
    if score.terms:
        return replace(score, left_out_terms=tuple(each.terms for each in without), left_out_seconds=seconds)
    values = tuple(each.value for each in without if each.value is not None)
    return replace(score, left_out=values, left_out_seconds=seconds)


def compare_sources(metrics: Metrics, scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, Score]]:
    """Give the scores of metrics that compare sources their values, from the terms of all sources that have some.

    Args:
        metrics: The metrics by name.
        scores: Scores by source and metric.
    """
    found = {source: dict(its) for source, its in scores.items()}
    for name, metric in metrics.items():
        if metric.combine is None:
            continue
        known = [source for source, its in found.items() if its[name].terms]
        if len(known) < 2:
            for source in known:
                found[source][name] = replace(found[source][name], reason=ALONE)
            continue
        terms = np.array([found[source][name].terms for source in known])
        values = metric.combine(terms)
        left_out = [found[source][name].left_out_terms for source in known]
        # [sources, parts], on the scale of all photos: on one of its own each part would leave the best source 1 and
        # the worst 0, as if nothing were uncertain. Where terms of one source are missing, no other is compared.
        parts = np.empty((len(known), 0))
        if all(left_out):
            parts = metric.combine(np.array(left_out).swapaxes(0, 1), terms).T
        for source, value, without in zip(known, values.tolist(), parts.tolist(), strict=True):
            found[source][name] = replace(found[source][name], value=value, left_out=tuple(without))
    return found


def score_one(compute: Callable[[Inputs], float | Sequence[float]], given: Inputs) -> Score:
    """Compute one score by a metric or a part of it, or its terms; none where there is an error or it is not finite."""
    start = time.perf_counter()
    try:
        value, reason = compute(given), ""
    except ValueError as error:
        value, reason = None, str(error)
    seconds = time.perf_counter() - start
    if value is None or not np.isfinite(value).all():
        return Score(None, seconds, reason or f"the score is {value}")
    return Score(None, seconds, terms=tuple(value)) if isinstance(value, Sequence) else Score(value, seconds)


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

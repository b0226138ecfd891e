"""Scores of all metrics of one source model on one target, from one set of statistics, and those on disk."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from headstart.metrics.arrays import Array, Flags, Floats
from headstart.metrics.transferability.catalogue import METRICS, TransferabilityMetric
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import SAME, interval
from headstart.modules.running_code import suite_digest
from headstart.output.files import digest_file, replacing
from headstart.output.progress import Progress, track
from headstart.output.tables import format_with_error
from headstart.store.json_digest import digest_of, read_sealed, sealed

Metrics = Mapping[str, TransferabilityMetric]
ALONE = "it compares sources with each other, and there is one alone"
AT_BOUND = "it is the highest possible whichever part of the photos is left out, so that its spread cannot be seen"
ONE_START = "it is of one random start, whose spread is not known"
# Whose versions stored scores depend on, and the rows of an array that are digested at once.
PACKAGES, DIGESTED_AT_ONCE = ("numpy", "scipy"), 4096


@dataclass(frozen=True)
class Score:
    """A metric's score of one source model on one target.

    Attributes:
        value: The score; None where there is none.
        seconds: Time of its computation, with the shared statistics that this metric was the first to need.
        reason: Why there is no score; empty where there is one.
        left_out: The score with each part of the photos left out, in the order of parts. Empty if it was not computed,
            or cannot be for one of them.
        uncertain: Why there is no interval; empty where there is one, and where none was requested.
        terms: Values from which the score follows, together with those of the other sources; empty where it does not.
        left_out_terms: The same with each part of the photos left out.
        starts: The scores of several random starts, whose mean is the score; empty where it depends on none.
        at_bound: Whether it is the highest possible score.
    """

    value: float | None
    seconds: float
    reason: str = ""
    left_out: tuple[float, ...] = ()
    uncertain: str = ""
    terms: tuple[float, ...] = ()
    left_out_terms: tuple[tuple[float, ...], ...] = ()
    starts: tuple[float, ...] = ()
    at_bound: bool = False

    @property
    def at_bound_without_parts(self) -> bool:
        """Return whether it is the highest possible score whichever part of the photos is left out."""
        return self.uncertain == AT_BOUND

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval over photos and random starts; None where there is none."""
        if self.value is None or not self.left_out:
            return None
        return interval(self.value, np.array(self.left_out), np.array(self.starts))

    @property
    def shown(self) -> str:
        """The score with half the width of its interval."""
        low, high = self.interval or (None, None)
        return format_with_error(self.value, None if low is None or high is None else (high - low) / 2)


SCORE = TypeAdapter(Score)


def score_source(metrics: Metrics, inputs: Inputs, parts: NDArray[np.int64], progress: Progress) -> dict[str, Score]:
    """Compute all metrics of one source model on one target, and again with each part of the photos left out.

    Metrics that compare sources return terms and no value; `compare_sources` computes it.

    Args:
        metrics: The metrics by name.
        inputs: The inputs of the metrics.
        parts: The part of each photo, from 0, `[samples]`, -1 for those that are always kept; all -1 for no intervals.
        progress: Advances with every metric, and with every metric without each part.
    """
    scorers = {name: metric.scorer(inputs) for name, metric in metrics.items()}
    classes = len(np.unique(inputs.labels))

    def score(name: str, kept: Flags, remaining: Inputs) -> Score:
        return _score_one(partial(scorers[name], kept), remaining, metrics[name].bound(classes))

    scores = {}
    for name in metrics:
        scores[name] = score(name, np.ones(len(parts), dtype=bool), inputs)
        progress.advance()

    without: dict[str, list[Score]] = {name: [] for name in metrics}
    for part in range(parts.max() + 1):
        kept = parts != part
        remaining = inputs.subset(kept)
        for name in metrics:
            if not scores[name].reason and not metrics[name].baseline:
                without[name].append(score(name, kept[inputs.order], remaining))
            progress.advance()

    return {name: _with_left_out(scores[name], without[name]) for name in metrics}


def _with_left_out(score: Score, without: list[Score]) -> Score:
    """Add the scores without each part to a score, or none of them where one is missing."""
    for part, other in enumerate(without, 1):
        if other.reason:
            return replace(score, uncertain=f"without part {part} of the photos: {other.reason}")
    if without and all(other.at_bound for other in without):
        return replace(score, uncertain=AT_BOUND)
    if without and len(score.starts) == 1:
        return replace(score, uncertain=ONE_START)
    if score.terms:
        return replace(score, left_out_terms=tuple(other.terms for other in without))
    return replace(score, left_out=tuple(other.value for other in without if other.value is not None))


def compare_sources(metrics: Metrics, scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, Score]]:
    """Compute the scores of metrics that compare sources, from the terms of all sources that have some.

    Args:
        metrics: The metrics by name.
        scores: Scores by source and metric.
    """
    compared = {source: dict(by_metric) for source, by_metric in scores.items()}
    for name, metric in metrics.items():
        if metric.combine is None:
            continue
        with_terms = {source: by_metric[name] for source, by_metric in scores.items() if by_metric[name].terms}
        if len(with_terms) < 2:
            for source, score in with_terms.items():
                compared[source][name] = replace(score, reason=ALONE)
            continue

        terms = np.array([score.terms for score in with_terms.values()])
        values = metric.combine(terms)
        # [sources, parts], on the scale of all photos. On a scale of its own, each part would score the best source 1
        # and the worst 0, without any uncertainty. No source is compared where terms of one source are missing.
        parts = np.empty((len(with_terms), 0))
        if all(score.left_out_terms for score in with_terms.values()):
            left_out = np.array([score.left_out_terms for score in with_terms.values()])
            parts = metric.combine(left_out.swapaxes(0, 1), terms).T
        for (source, score), value, without in zip(with_terms.items(), values.tolist(), parts.tolist(), strict=True):
            compared[source][name] = replace(score, value=value, left_out=tuple(without))

    return compared


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
        inputs, by_name = whole.subset(np.isin(whole.labels, classes)), {}
        for name, metric in metrics.items():
            score = _score_one(metric.evaluate, inputs, metric.bound(len(classes)))
            if score.value is not None and not metric.higher_is_better:
                score = replace(score, value=-score.value)
            by_name[name] = score
        scores.append(by_name)
    return scores


def _score_one(
    compute: Callable[[Inputs], float | Floats | Sequence[float]], inputs: Inputs, bound: float | None
) -> Score:
    """Compute one score, its terms, or the scores of several random starts.

    An error, or a value that is not finite, leaves a score without a value. A score that is the bound up to rounding
    errors is marked.
    """
    start, value, reason = time.perf_counter(), None, ""
    try:
        value = compute(inputs)
    except ValueError as error:
        reason = str(error)
    seconds = time.perf_counter() - start

    if value is None or not np.isfinite(value).all():
        return Score(None, seconds, reason or f"the score is {value}")
    if isinstance(value, Sequence):
        return Score(None, seconds, terms=tuple(value))
    starts = tuple(value.tolist()) if isinstance(value, np.ndarray) else ()
    mean = float(np.mean(value)) if starts else float(value)
    at_bound = bound is not None and math.isclose(mean, bound, rel_tol=SAME, abs_tol=SAME)
    return Score(mean, seconds, starts=starts, at_bound=at_bound)


class StoredScores:
    """Scores of one source on one target in the cache folder, found by what they depend on, not by names.

    Only metrics of the catalogue are kept: what the user's own functions depend on is unknown.

    Args:
        cache: The cache folder.
        inputs: The inputs of the metrics.
        parts: The part of each photo that is left out, `[samples]`.

    Attributes:
        file: Where they are stored.
        scores: The scores that are there, by the metric's name.
    """

    def __init__(self, cache: Path, inputs: Inputs, parts: NDArray[np.int64]) -> None:
        arrays = [inputs.features, inputs.labels, parts, *([] if inputs.logits is None else [inputs.logits])]
        digest = digest_of(
            {
                "arrays": [[*array.shape, str(array.dtype), _digest(array)] for array in arrays],
                "facts": asdict(inputs.facts),
                "seed": inputs.seed,
                "code": [suite_digest(), digest_file(Path(__file__))],
                "versions": {name: metadata.version(name) for name in PACKAGES},
            }
        )
        self.file = cache / "scores" / digest[:2] / f"{digest}.json"
        self.scores: dict[str, Score] = {}
        # Scores that cannot be read are computed again.
        with suppress(OSError, ValueError):
            stored = read_sealed(self.file)["scores"]
            self.scores = {name: SCORE.validate_python(score) for name, score in stored.items()}

    def keep(self, computed: Mapping[str, Score]) -> None:
        """Store further scores, by the metric's name; errors of the disk are ignored."""
        scores = {name: score for name, score in computed.items() if name.partition("(")[0] in METRICS}
        if scores:
            self.scores |= scores
            document = {"scores": {name: asdict(score) for name, score in self.scores.items()}}
            with suppress(OSError):
                self.file.parent.mkdir(parents=True, exist_ok=True)
                with replacing(self.file) as partial_file:
                    partial_file.write_text(json.dumps(sealed(document, {})))


def _digest(array: Array) -> str:
    """Return the SHA-256 of an array's values, some rows at a time."""
    digest = hashlib.sha256()
    for first in range(0, len(array), DIGESTED_AT_ONCE):
        digest.update(np.ascontiguousarray(array[first : first + DIGESTED_AT_ONCE]).data)
    return digest.hexdigest()

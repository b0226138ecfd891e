"""Compute the scores of transferability metrics of a source model on a target, and keep them on disk."""

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
from headstart.metrics.transferability.left_out import TOLERANCE, interval
from headstart.modules.running_code import suite_digest
from headstart.output.files import digest_file, replacing
from headstart.output.progress import Progress, track
from headstart.output.tables import format_with_error
from headstart.store.json_digest import digest_of, read_sealed, sealed

Metrics = Mapping[str, TransferabilityMetric]
ALONE = "it compares sources with each other, and there is only one"
AT_BOUND = "it is the highest possible whichever part of the photos is left out, so that its spread cannot be seen"
ONE_START = "it comes from a single random start, so that its spread is unknown"
# Stored scores depend on the versions of these packages.
PACKAGES = ("numpy", "scipy")
# Rows of an array that are digested at once.
DIGESTED_AT_ONCE = 4096


@dataclass(frozen=True)
class Score:
    """A metric's score of one source model on one target.

    Attributes:
        value: The score; None where there is none.
        seconds: Time of its computation, with the shared statistics that this metric was the first to need.
        reason: Why there is no score; empty where there is one.
        left_out: The score with each part of the photos left out, in the order of parts. Empty if these scores were not
            requested, or if one of them does not exist.
        uncertain: Why there is no interval; empty where there is one, and where none was requested.
        terms: Values of this source from which a metric that compares sources computes the scores of all of them; empty
            for other metrics.
        left_out_terms: The terms with each part of the photos left out.
        starts: The scores of several random starts, whose mean is the score; empty for metrics without random starts.
        at_bound: Whether the score is the highest possible one.
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
    def left_out_at_bound(self) -> bool:
        """Return whether the score is the highest possible one whichever part of the photos is left out."""
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
        progress: Advances once for every metric, and once more for every metric and part.
    """
    scorers = {name: metric.scorer(inputs) for name, metric in metrics.items()}
    classes = len(np.unique(inputs.labels))

    def score(name: str, kept: Flags, remaining: Inputs) -> Score:
        return _score_one(partial(scorers[name], kept), remaining, metrics[name].bound(classes))

    scores = {}
    for name in metrics:
        scores[name] = score(name, np.ones(len(parts), dtype=bool), inputs)
        progress.advance()

    left_out: dict[str, list[Score]] = {name: [] for name in metrics}
    for part in range(parts.max() + 1):
        kept = parts != part
        remaining = inputs.subset(kept)
        for name in metrics:
            if not scores[name].reason and not metrics[name].baseline:
                left_out[name].append(score(name, kept[inputs.order], remaining))
            progress.advance()

    return {name: _add_left_out(scores[name], left_out[name]) for name in metrics}


def _add_left_out(score: Score, left_out: list[Score]) -> Score:
    """Add to a score the scores with each part left out; if one is missing, add only the reason."""
    for part, other in enumerate(left_out, 1):
        if other.reason:
            return replace(score, uncertain=f"without part {part} of the photos: {other.reason}")
    if left_out and all(other.at_bound for other in left_out):
        return replace(score, uncertain=AT_BOUND)
    if left_out and len(score.starts) == 1:
        return replace(score, uncertain=ONE_START)
    if score.terms:
        return replace(score, left_out_terms=tuple(other.terms for other in left_out))
    return replace(score, left_out=tuple(other.value for other in left_out if other.value is not None))


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
        # Scores with each part left out, `[sources, parts]`, scaled by the terms of all photos. If every part set its
        # own scale, the best source would always score 1 and the worst 0, and no uncertainty would be seen. There are
        # no such scores where one source lacks terms.
        left_out = np.empty((len(with_terms), 0))
        if all(score.left_out_terms for score in with_terms.values()):
            left_out_terms = np.array([score.left_out_terms for score in with_terms.values()])
            left_out = metric.combine(left_out_terms.swapaxes(0, 1), terms).T
        for (source, score), value, row in zip(with_terms.items(), values.tolist(), left_out.tolist(), strict=True):
            compared[source][name] = replace(score, value=value, left_out=tuple(row))

    return compared


def score_targets(whole: Inputs, targets: Sequence[NDArray[np.int64]], metrics: Metrics) -> list[dict[str, Score]]:
    """Compute the metrics on each target, and return their scores by name for each target.

    A higher score always means a better target: metrics whose lower scores are better have their sign reversed. The
    time of a metric includes shared statistics that it is the first to need.

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

    After a ValueError, or if the value is not finite, the score has a reason and no value. A score that equals the
    bound up to rounding errors is marked as `at_bound`.
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
    at_bound = bound is not None and math.isclose(mean, bound, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return Score(mean, seconds, starts=starts, at_bound=at_bound)


class StoredScores:
    """Scores of one source on one target in the cache folder, found by a digest of all that they depend on.

    Only metrics of the catalogue are kept, because it is unknown what the user's own functions depend on.

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
        # The name of a metric with options is `NAME(OPTIONS)`.
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

"""A pool of targets against a single one and against as many single ones, for every metric."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jsonargparse
import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import overlapping_classes, timed
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.target_selection.scores import GbcAxes, score_targets
from headstart.metrics.ranking.ranking_measures import kendall
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import ClassShare, Inputs, Pool, sample_targets

SOURCE_CLASSES = 1000
SINGLES = 3
CASES: tuple[tuple[str, GbcAxes], ...] = (
    ("gbc", "dataset"),
    ("gbc", "features"),
    ("gbc", "target"),
    ("leep", "dataset"),
    ("nce", "dataset"),
    ("trans_rate", "dataset"),
    ("h_score", "dataset"),
    ("h_score_shrunk", "dataset"),
    ("log_me", "dataset"),
)


def main(
    samples: int = 20_000, features: int = 512, classes: int = 100, targets: int = 100, share: ClassShare = "half"
) -> None:
    """Print for every metric the time of a single target, of the pool, and their ratio.

    Args:
        samples: Number of photos.
        features: Number of features.
        classes: Number of classes of the data set.
        targets: Targets of the pool.
        share: How many classes a target has.
    """
    generator = np.random.default_rng(0)
    x, labels = overlapping_classes(generator, samples, features, classes)
    probabilities = np.exp(3 * generator.standard_normal((samples, SOURCE_CLASSES)))
    probabilities /= probabilities.sum(1, keepdims=True)
    pool = sample_targets(classes, targets, share, seed=0)
    print(f"{samples} x {features}, {classes} classes, {targets} targets ({share}), {SOURCE_CLASSES} source classes")
    scores: dict[GbcAxes, list[float]] = {}
    given = Pool(x, labels, probabilities, pool)
    gathering, statistics = timed(lambda: given.dataset)
    moments, _ = timed(lambda: statistics.moments)
    print(
        f"gathered once, part of what follows: means {gathering:.2f} s, second moments, where needed, {moments:.2f} s"
    )

    def score(metrics: list[str], axes: GbcAxes = "dataset") -> list[dict[str, Score]]:
        # What is gathered once is part of it.
        return score_targets(Pool(x, labels, probabilities, pool), {name: METRICS[name] for name in metrics}, axes)

    for metric, axes in CASES:
        single = float(np.mean([_single(x, probabilities, labels, chosen, metric) for chosen in pool[:SINGLES]]))
        seconds, found = timed(partial(score, [metric], axes))
        name = f"{metric} ({axes})" if metric == "gbc" else metric
        ratio, gain = seconds / single, targets * single / seconds
        print(f"{name}: one {single:.3f} s, {targets} {seconds:.2f} s: {ratio:.1f} times one, {gain:.1f} times faster")
        if metric == "gbc":
            scores[axes] = [scored[metric].value or 0.0 for scored in found]
    several: list[str] = ["gbc", "leep", "log_me", "h_score", "trans_rate", "num_classes"]
    seconds, _ = timed(partial(score, several))
    print(f"{', '.join(several)} together: {seconds:.2f} s")
    _compare(scores["dataset"], scores["target"])


def _single(
    x: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    labels: NDArray[np.int64],
    chosen: NDArray[np.int64],
    metric: str,
) -> float:
    """Return the seconds of the plain metric on the rows of one target."""
    rows = np.isin(labels, chosen)
    given = Inputs(x[rows], labels[rows], probabilities[rows])
    return timed(lambda: METRICS[metric].compute(given))[0]


def _compare(dataset: Sequence[float], target: Sequence[float]) -> None:
    """Say how far GBC along the axes of the data set is from GBC along those of each target."""
    ours, exact = np.array(dataset), np.array(target)
    relative = np.abs(ours / exact - 1)
    print(
        f"GBC along the axes of the data set against those of each target: Kendall {kendall(ours, exact):.3f}, "
        f"relative difference {np.median(relative):.3f} in the median, {relative.max():.3f} at most"
    )


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

"""A pool of targets against a single one and against as many single ones, for every metric."""

from functools import partial

import numpy as np

from headstart.benchmarks.speed.frame import overlapping_classes, timed
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.target_selection.scores import GbcAxes, score_targets
from headstart.metrics.ranking.ranking_measures import kendall
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import ClassShare, Inputs, Pool, sample_targets

SOURCE_CLASSES, SINGLES = 1000, 3
AXES: tuple[GbcAxes, ...] = ("dataset", "features", "target")
OTHERS = ("leep", "nce", "trans_rate", "h_score", "h_score_shrunk", "log_me")


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
    rows = [np.isin(labels, chosen) for chosen in pool[:SINGLES]]
    singles = [Inputs(x[each], labels[each], probabilities[each]) for each in rows]

    def score(axes: GbcAxes, *metrics: str) -> list[dict[str, Score]]:
        # Statistics that are gathered once for all targets belong to the time.
        return score_targets(Pool(x, labels, probabilities, pool), {name: METRICS[name] for name in metrics}, axes)

    print(f"{samples} x {features}, {classes} classes, {targets} targets ({share}), {SOURCE_CLASSES} source classes")
    gbc = {}
    for metric, axes in (*(("gbc", axes) for axes in AXES), *((name, AXES[0]) for name in OTHERS)):
        single = float(np.mean([timed(partial(METRICS[metric].compute, each))[0] for each in singles]))
        seconds, scores = timed(partial(score, axes, metric))
        print(
            f"{metric} ({axes}): one {single:.3f} s, {targets} {seconds:.2f} s: {seconds / single:.1f} times one, "
            f"{targets * single / seconds:.1f} times faster"
        )
        if metric == "gbc":
            gbc[axes] = np.array([each[metric].value or 0.0 for each in scores])
    print(f"gbc and {', '.join(OTHERS)} together: {timed(partial(score, AXES[0], 'gbc', *OTHERS))[0]:.2f} s")

    relative = np.abs(gbc["dataset"] / gbc["target"] - 1)
    print(
        f"GBC along the axes of the data set against those of each target: "
        f"Kendall {kendall(gbc['dataset'], gbc['target']):.3f}, relative difference {np.median(relative):.3f} in the "
        f"median, {relative.max():.3f} at most"
    )

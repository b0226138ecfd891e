"""Transferability metrics beside their floor, one Gram product and one eigendecomposition, and without a part."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from headstart.benchmarks.speed.frame import compare, overlapping_classes, ratios
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.fisher_discriminant import softmax
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide

QUICK_METRICS = [name for name in DEFAULT_METRICS if name != "n_leep"]
SHARED = ("h_score", "h_score_shrunk", "log_me", "trans_rate", "gbc")


def main(
    samples: int = 10_000,
    features: int = 2048,
    classes: int = 100,
    scale: float = 10.0,
    apart: float = 1.0,
    metrics: list[str] | None = None,
    repeats: int = 3,
) -> dict[str, float]:
    """Print the processor time of metrics, over their floor, and without a part of the samples over that of plain rows.

    Args:
        samples: Number of samples.
        features: Number of features.
        classes: Number of target classes.
        scale: Factor of the features.
        apart: Spread of the classes' means, in spreads within classes.
        metrics: Names of the metrics that are timed, each with all samples; by default the quick ones in all ways.
        repeats: How often each is timed.

    Returns:
        The time of each over the floor, with all samples.
    """
    x, labels = overlapping_classes(np.random.default_rng(0), samples, features, classes, apart=apart)
    x *= scale
    # Source classes of LEEP and NCE.
    probabilities = softmax(x[:, :1000].copy())
    centred = x - x.mean(0)
    weights = np.zeros((features, classes))

    def score(*names: str) -> list[float]:
        inputs = Inputs(x, labels, probabilities)
        return [METRICS[name].compute(inputs) for name in names]

    print(f"{samples} x {features}, {classes} classes, float64, least of {repeats}, processor time")
    functions: dict[str, Callable[[], object]] = {
        "the floor": lambda: np.linalg.eigh(centred.T @ centred),
        "one product with weights of all classes": lambda: centred @ weights,
        **{METRICS[name].title: partial(score, name) for name in metrics or (*QUICK_METRICS, "etran", "ncti")},
    }
    if not metrics:
        functions["all five on shared statistics"] = partial(score, *SHARED)
    seconds = compare(functions, "the floor", repeats, min, time.process_time)
    if not metrics:
        _compare_left_out(Inputs(x, labels, probabilities))
    return ratios(seconds, "the floor")


def _compare_left_out(whole: Inputs) -> None:
    """Time metrics without a part of the samples, from the statistics of all, and from the remaining rows alone.

    N-LEEP is left out: its mixture takes as long from the remaining rows as from all.
    """
    remaining = divide(whole.labels, 10, 0) != 0
    scorers = {name: METRICS[name].scorer(whole) for name in QUICK_METRICS}
    whole.statistics.gram  # noqa: B018 - computed once for all parts

    def without_part(*names: str) -> None:
        rest = whole.remaining(remaining)
        for name in names:
            scorers[name](remaining[whole.order], rest)

    def from_rows(*names: str) -> None:
        rest = Inputs(whole.features[remaining], whole.labels[remaining], whole.probabilities[remaining])
        for name in names:
            METRICS[name].compute(rest)

    for title, names in (("all metrics", QUICK_METRICS), *((METRICS[name].title, [name]) for name in QUICK_METRICS)):
        without_part(*names)
        ways = {f"{title} without a part": without_part, f"{title} from the rows": from_rows}
        compare(
            {way: partial(function, *names) for way, function in ways.items()},
            next(iter(ways)),
            3,
            min,
            time.process_time,
        )

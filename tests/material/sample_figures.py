"""A sample of every figure that the suite draws, from small inputs of a fixed seed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from headstart.callbacks.plots import plot_criterion_reached, plot_learning_curves
from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.evaluation.audit.figures import plot_audit
from headstart.evaluation.published.static_order import plot_static_order
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.tests.material.report_runs import traces
from headstart.tests.material.runs import curves_of
from headstart.tests.material.score_tables import rising_table, run_audit, write_table

METHODS = [
    *("baseline", "streaming_lda", "sgd", "semantic_class_mean", "recursive_least_squares"),
    *("gaussian_discriminant_analysis", "replay", "My own method"),
]
TITLE = "Cats and dogs, MobileNetV2 (ImageNet), batch size 1"


def sample_figures(folder: Path) -> Iterator[tuple[str, Figure]]:
    """Yield each figure with its name; commands may write into the folder."""
    samples: list[Callable[[Path], dict[str, Figure]]] = [
        *(_comparisons, _heatmaps, _audit, _static_order),
    ]
    for sample in samples:
        yield from sample(folder).items()


def _curves(methods: int) -> Curves:
    return curves_of(traces(1, methods)[::-1], METHODS[:methods])


def _comparisons(folder: Path) -> dict[str, Figure]:
    return {
        "learning_curves": plot_learning_curves(_curves(5), TITLE, True),
        "learning_curves_incomplete": plot_learning_curves(_curves(1), TITLE, False),
        "learning_curves_panels": plot_learning_curves(_curves(8), TITLE, True),
        "criterion_reached": plot_criterion_reached(_curves(5), TITLE, True),
        "criterion_reached_panels": plot_criterion_reached(_curves(8), TITLE, True),
    }


def _similarities(models: int) -> NDArray[np.float64]:
    points = np.random.default_rng(0).normal(size=(models, 3))
    return np.asarray(np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / 8))


def _heatmaps(folder: Path) -> dict[str, Figure]:
    names = ["vit_small_patch14_dinov2.lvd142m", *(f"model_{index}" for index in range(1, 20))]
    title = "Red Team, score 0.6267: linear CKA (biased, of features in float32), 1,000 stimuli"
    return {
        "heatmap": plot_heatmap(names[:5], _similarities(5), title, "linear CKA"),
        "heatmap_of_many": plot_heatmap(names, _similarities(20), title, "linear CKA"),
    }


def _audit(folder: Path) -> dict[str, Figure]:
    table = rising_table({"leep": [0.2, 0.1, 0.4, 0.3], "logme": [0.4, 0.1, 0.2, 0.3]})
    document = run_audit(write_table(folder / "table.csv", table), folder / "audit")
    return {f"audit_{name}": figure for name, figure in plot_audit(document).items()}


def _static_order(folder: Path) -> dict[str, Figure]:
    documents = {
        name: {
            "sources": ["a"] * sources,
            "targets": ["t"] * 3,
            "rankers": {
                "mean_rank": {
                    "weighted_kendall": {"mean": mean, "ci95": ends, "per_target": {"t": mean - 0.2, "u": mean + 0.2}}
                }
            },
        }
        for name, sources, mean, ends in (("parc_all", 67, 0.7, [0.6, 0.8]), ("supervised_full", 11, 0.4, [None, None]))
    }
    return {"static_order": plot_static_order(documents)}

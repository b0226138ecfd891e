import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.evaluation.sources.scores import Score, score_targets
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.inputs import Inputs, sample_targets
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.sfda import sfda
from headstart.metrics.transferability.trans_rate import trans_rate

Features = NDArray[np.float64]
Labels = NDArray[np.int64]
CLASSES, SOURCE_CLASSES, TARGETS = 9, 6, 8
SEED = 4

# The plain metrics, on the rows of a target.
PLAIN: dict[str, Callable[[Features, Features, Labels], float]] = {
    "gbc": lambda x, p, y: gbc(x, y),
    "leep": lambda x, p, y: leep(p, y),
    "n_leep": lambda x, p, y: n_leep(x, y, seed=SEED),
    "log_me": lambda x, p, y: log_me(x, y),
    "h_score": lambda x, p, y: h_score(x, y),
    "h_score_shrunk": lambda x, p, y: h_score(x, y, shrinkage=True),
    "nce": lambda x, p, y: nce(p.argmax(1), y),
    "trans_rate": lambda x, p, y: trans_rate(x, y),
    "knn": lambda x, p, y: knn_accuracy(x, y),
    "parc": lambda x, p, y: parc(x, y, seed=SEED),
    "sfda": lambda x, p, y: sfda(x, y),
    "pactran": lambda x, p, y: pactran(x, y),
    "source_accuracy": lambda x, p, y: 0.5,
    "parameters": lambda x, p, y: 1000.0,
    "linear_probe": lambda x, p, y: linear_probe_accuracy(x, y, seed=SEED),
    "num_classes": lambda x, p, y: -float(len(np.unique(y))),
}


def make_data(dimensions: int, samples: int = 270) -> tuple[Features, Features, Labels]:
    """Return features, probabilities and labels with gaps, of classes of several sizes, in no order."""
    generator = np.random.default_rng(0)
    codes = np.concatenate([np.arange(CLASSES).repeat(6), generator.integers(0, CLASSES, samples - 6 * CLASSES)])
    generator.shuffle(codes)
    scale = np.arange(1, dimensions + 1) ** -0.5
    centres = generator.standard_normal((CLASSES, dimensions))
    features = (generator.standard_normal((samples, dimensions)) + centres[codes] + 3) * scale
    probabilities = np.exp(2 * generator.standard_normal((samples, SOURCE_CLASSES)))
    probabilities /= probabilities.sum(1, keepdims=True)
    return features, probabilities, 3 * codes + 1


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [5, 40, 400])
def test_every_metric_is_the_plain_one_on_the_rows_of_the_target(dimensions: int) -> None:
    features, probabilities, labels = make_data(dimensions)
    targets = [np.unique(labels)[chosen] for chosen in sample_targets(CLASSES, TARGETS, "varying", 1)]
    inputs = Inputs(features, labels, np.log(probabilities), SEED, SourceFacts(1000, 0.5))
    for chosen, scores in zip(targets, score(inputs, targets, list(PLAIN)), strict=True):
        rows = np.isin(labels, chosen)
        for metric, plain in PLAIN.items():
            expected = plain(features[rows], probabilities[rows], labels[rows])
            assert scores[metric].value == pytest.approx(expected, rel=1e-12, abs=1e-12), metric


def score(inputs: Inputs, targets: list[Labels], metrics: list[str]) -> list[dict[str, Score]]:
    return score_targets(inputs, targets, {name: METRICS[name] for name in metrics})


def test_a_metric_that_cannot_be_computed_says_why_and_leaves_the_others() -> None:
    features, _, labels = make_data(5)
    classes = np.unique(labels)
    for scores in score(Inputs(features, labels), [classes[:2], classes], ["leep", "num_classes"]):
        assert scores["leep"].value is None
        assert "source head" in scores["leep"].reason
        assert scores["num_classes"].value is not None


def test_a_score_that_is_not_finite_is_none() -> None:
    labels = np.repeat(np.arange(3), 5)
    inputs = Inputs(np.eye(3)[labels], labels)
    infinite = replace(METRICS["log_me"], function=lambda statistics: math.inf)
    [scores] = score_targets(inputs, [np.array([0, 1])], {"infinite": infinite})
    assert scores["infinite"].value is None
    assert scores["infinite"].reason == "the score is inf"

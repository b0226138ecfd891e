import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import headstart.metrics.transferability.inputs as module
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.target_selection.scores import GbcAxes, score_targets
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.inputs import DatasetStatistics, Pool, TargetStatistics, sample_targets
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


def score(pool: Pool, metrics: list[str], axes: GbcAxes = "dataset") -> list[dict[str, Score]]:
    return score_targets(pool, {name: METRICS[name] for name in metrics}, axes)


def compare(dimensions: int, metrics: list[str], axes: GbcAxes, seed: int = SEED) -> None:
    features, probabilities, labels = make_data(dimensions)
    targets = sample_targets(CLASSES, TARGETS, "varying", 1)
    pool = Pool(features, labels, probabilities, targets, seed, SourceFacts(1000, 0.5))
    for chosen, scores in zip(targets, score(pool, metrics, axes), strict=True):
        rows = np.isin(labels, 3 * chosen + 1)
        for metric in metrics:
            expected = PLAIN[metric](features[rows], probabilities[rows], labels[rows])
            if metric == "gbc" and axes == "features":
                expected = gbc(features[rows], labels[rows], pca=None)
            # PAC-Tran is the end of an optimisation, which may be a step earlier on another processor.
            tolerance = 1e-7 if metric == "pactran" else 1e-9
            assert scores[metric].value == pytest.approx(expected, rel=tolerance, abs=tolerance), metric


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [5, 40, 400])
def test_every_metric_is_the_plain_one_on_the_rows_of_the_target(dimensions: int) -> None:
    compare(dimensions, list(PLAIN), "target")


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [5, 40])
def test_so_it_is_beyond_the_budget_of_second_moments(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOMENTS_BUDGET", 0)
    compare(dimensions, ["gbc", "n_leep", "log_me", "h_score", "h_score_shrunk", "trans_rate"], "target")


@pytest.mark.parametrize("dimensions", [5, 100, 400])
def test_overlaps_of_all_features_are_exact(dimensions: int) -> None:
    compare(dimensions, ["gbc"], "features")


@pytest.mark.parametrize("dimensions", [5, 50])
def test_overlaps_along_the_axes_of_the_data_set_are_exact_where_these_are_no_more_than_64(dimensions: int) -> None:
    # A rotation leaves distances and the mean variance as they are.
    features, probabilities, labels = make_data(dimensions)
    targets = [np.arange(CLASSES), np.array([0, 3, 4])]
    pool = Pool(features, labels, probabilities, targets)
    for chosen, scores in zip(targets, score(pool, ["gbc"]), strict=True):
        rows = np.isin(labels, 3 * chosen + 1)
        assert scores["gbc"].value == pytest.approx(gbc(features[rows], labels[rows]), rel=1e-9)


def test_axes_of_the_data_set_are_those_of_the_target_that_is_all_of_it() -> None:
    features, probabilities, labels = make_data(100)
    pool = Pool(features, labels, probabilities, [np.arange(CLASSES)])
    [scores] = score(pool, ["gbc"])
    assert scores["gbc"].value == pytest.approx(gbc(features, labels), rel=1e-9)


def test_a_pass_over_second_moments_touches_no_rows() -> None:
    features, _, labels = make_data(5)
    statistics = TargetStatistics(DatasetStatistics(features, labels), np.array([1, 2, 5]))
    h_score(statistics)
    log_me(statistics)
    assert "centred" not in vars(statistics)


@pytest.mark.parametrize("budget", [0, 2**30])
def test_features_that_a_target_has_constant_are_no_direction(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOMENTS_BUDGET", budget)
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 10)
    features = np.repeat([[0.1, 0.7, 1 / 3]], 40, axis=0)
    features[20:] = generator.standard_normal((20, 3))
    targets = [np.array([0, 1]), np.array([1, 2])]
    pool = Pool(features, labels, None, targets)
    constant, other = score(pool, ["h_score", "trans_rate"])
    assert (constant["h_score"].value, constant["trans_rate"].value) == (0, 0)
    rows = (labels == 1) | (labels == 2)
    assert other["h_score"].value == pytest.approx(h_score(features[rows], labels[rows]), rel=1e-9)


def test_a_metric_that_cannot_be_computed_says_why_and_leaves_the_others() -> None:
    features, _, labels = make_data(5)
    pool = Pool(features, labels, None, [np.array([0, 1]), np.arange(CLASSES)])
    for scores in score(pool, ["leep", "num_classes"]):
        assert scores["leep"].value is None
        assert "source head" in scores["leep"].reason
        assert scores["num_classes"].value is not None


def test_probabilities_are_checked_as_by_the_plain_metric() -> None:
    features, probabilities, labels = make_data(5)
    pool = Pool(features, labels, 2 * probabilities, [np.array([0, 1])])
    [scores] = score(pool, ["leep"])
    assert "must sum to 1" in scores["leep"].reason


def test_source_classes_without_probability_are_left_out() -> None:
    features, _, labels = make_data(5)
    probabilities = np.eye(3)[(labels > 10).astype(int)]
    targets = [np.array([0, 1]), np.arange(CLASSES)]
    pool = Pool(features, labels, probabilities, targets)
    for chosen, scores in zip(targets, score(pool, ["leep"]), strict=True):
        rows = np.isin(labels, 3 * chosen + 1)
        assert scores["leep"].value == pytest.approx(leep(probabilities[rows], labels[rows]), rel=1e-12)


def test_a_score_that_is_not_finite_is_none() -> None:
    labels = np.repeat(np.arange(3), 5)
    pool = Pool(np.eye(3)[labels], labels, None, [np.array([0, 1])])
    infinite = replace(METRICS["log_me"], function=lambda statistics: math.inf)
    [scores] = score_targets(pool, {"infinite": infinite})
    assert scores["infinite"].value is None
    assert scores["infinite"].reason == "the score is inf"

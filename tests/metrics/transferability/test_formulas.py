"""Transferability metrics against independent computations, at the ends of their ranges, and options they refuse."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from headstart.metrics import (
    etran_terms,
    gbc,
    h_score,
    knn_accuracy,
    leep,
    linear_probe_accuracy,
    log_me,
    n_leep,
    nce,
    ncti_terms,
    num_classes,
    pactran,
    parc,
    sfda,
    trans_rate,
)
from headstart.metrics.transferability.baselines import SourceFacts, parameter_count, source_accuracy
from headstart.metrics.transferability.catalogue import METRICS
from headstart.tests.material import metric_formulas as formulas
from headstart.tests.material.metric_formulas import entropy, labelled, to_probabilities


class Comparison(NamedTuple):
    """A metric, its formula, arguments of `labelled`, options of both, and the relative tolerance."""

    metric: Callable[..., Any]
    formula: Callable[..., Any]
    shapes: Sequence[tuple[float, ...]]
    options: Sequence[Mapping[str, Any]] = ({},)
    tolerance: float = 1e-9


VARIANTS = ({"variant": "released"}, {"variant": "published"})
GBC_OPTIONS = [
    {"covariance": covariance, "pca": pca, "variant": variant}
    for covariance, pca, variant in product(("spherical", "diagonal"), (None, 3), ("textbook", "released"))
]
RELEASED_PARC: list[dict[str, Any]] = [
    {"variant": "released"},
    {"variant": "released", "components": 4},
    {"components": 4},
]
MIXTURES = [{"pca": share, "components_per_class": 2, "fits": 3, "seed": 5} for share in (0.8, 1.0)]
COMPARED = {
    "gbc": Comparison(gbc, formulas.gbc, [(60, 6, 4, 0.7), (30, 50, 3, 0.7)], GBC_OPTIONS),
    "leep": Comparison(
        lambda x, y: leep(to_probabilities(x), y), formulas.leep, [(50, 4, 3), (30, 10, 2), (8, 20, 5), (1, 3, 1)]
    ),
    "n_leep": Comparison(n_leep, formulas.n_leep, [(240, 12, 3, 0.6), (150, 5, 3, 0.6)], MIXTURES, 1e-6),
    "log_me": Comparison(log_me, formulas.log_me, [(60, 5, 3), (40, 40, 2), (30, 60, 3)], tolerance=1e-6),
    "released log_me": Comparison(log_me, formulas.log_me, [(30, 8), (30, 40), (30, 80)], VARIANTS[:1]),
    "h_score": Comparison(h_score, formulas.h_score, [(50, 6, 4), (20, 40, 3), (12, 12, 2), (6, 5, 6)], tolerance=1e-8),
    "h_score_shrunk": Comparison(
        h_score, formulas.h_score, [(60, 8, 4), (20, 50, 3), (30, 30, 2)], [{"shrinkage": True}]
    ),
    "nce": Comparison(lambda x, y: nce(x.argmax(1), y), formulas.nce, [(300, 6, 4), (200, 4, 2)]),
    "trans_rate": Comparison(
        trans_rate, formulas.trans_rate, [(80, 6, 4), (30, 50, 3), (60, 25, 2)], [{"epsilon": 1e-4}, {"epsilon": 0.5}]
    ),
    "knn": Comparison(
        knn_accuracy, formulas.knn, [(300, 8, 4, 0.5), (60, 200, 3, 0.1), (15, 6, 3)], [{"neighbours": 1}, {}]
    ),
    "parc": Comparison(parc, formulas.parc, [(60, 5, 2, 0.5), (80, 30, 4, 0.5), (30, 100, 10, 0.5)]),
    "released parc": Comparison(parc, formulas.parc, [(60, 5, 2, 0.5), (80, 30, 7, 0.5)], RELEASED_PARC),
    "sfda": Comparison(
        sfda, formulas.sfda, [(120, 6, 3, 0.5, 0.3), (90, 20, 2, 0.2, 0.3), (30, 50, 4, 0.3, 0.1)], tolerance=1e-7
    ),
    "etran": Comparison(
        etran_terms, formulas.etran, [(120, 6, 3, 1, 0.3), (30, 50, 3, 0.3, 0.1), (1000, 8, 3, 1, 0.3)], VARIANTS
    ),
    "ncti": Comparison(
        ncti_terms, formulas.ncti, [(150, 20, 3, 0.3, 2), (200, 90, 2, 0.2, 2), (300, 100, 5, 0.2, 2)], tolerance=1e-6
    ),
    "pactran": Comparison(
        lambda x, y, **options: pactran(x, y, variant="published", **options),
        formulas.pactran,
        [(90, 5, 3), (20, 30, 4)],
        [{}, {"penalty_share": 0.1, "prior_variance": 100.0}],
        1e-6,
    ),
    "released pactran": Comparison(pactran, formulas.released_pactran, [(90, 5, 3), (20, 30, 4)], tolerance=1e-6),
    "linear_probe": Comparison(
        linear_probe_accuracy,
        formulas.linear_probe,
        [(120, 5, 3, 0.5), (200, 8, 5, 0.5), (60, 100, 4, 0.2)],
        [{"folds": 4, "seed": 7}],
    ),
}


def test_every_metric_is_compared() -> None:
    assert [name for name, metric in METRICS.items() if not metric.baseline and name not in COMPARED] == []


@pytest.mark.parametrize("name", COMPARED)
def test_as_the_formula(name: str) -> None:
    metric, formula, shapes, options, tolerance = COMPARED[name]
    wrong = []
    for shape, option in product(shapes, options):
        x, labels = labelled(*shape)
        value, expected = metric(x, labels, **option), formula(x, labels, **option)
        if value != pytest.approx(expected, rel=tolerance, abs=1e-15):
            wrong.append((shape, option, value, expected))
    assert not wrong


SAMPLES = labelled(60, 5)[0]
ONE, TWO, THREE, FIVE, LARGE = (
    np.zeros(60, int),
    np.arange(60) % 2,
    np.arange(60) % 3,
    np.arange(60) % 5,
    np.repeat([0, 1], [42, 18]),
)
CONSTANT, EQUAL = np.full((60, 4), 0.1), np.zeros((60, 4))
NOISE = 0.5 * math.log(60 / (2 * math.pi * 20)) - 0.5
OF_INTERCEPTS = 3 / 60 * 10 * math.log1p(60 * 60 * 2 / 3 / 12) / 2
# Metrics of arguments, and the score.
ENDS: list[tuple[Callable[..., Any], tuple[Any, ...], float | tuple[float, ...]]] = [
    (gbc, (CONSTANT, FIVE), -5 * 4),
    (gbc, (SAMPLES, ONE), 0),
    # Classes of one sample have the least variance.
    (gbc, ([[0.0, 0.0], [0.01, 0.0]], [0, 1], "spherical", None), -2 * math.exp(-(0.01**2) / 1e-4 / 8)),
    (h_score, (CONSTANT, THREE), 0),
    (h_score, ([[1.0] * 3], [4]), 0),
    # Every sample a class of its own: the means are the samples.
    (h_score, (SAMPLES, np.arange(60)), 5),
    (log_me, (EQUAL, THREE), NOISE),
    # Orthogonal to every target: the precision of the weights grows without bound.
    (log_me, (np.tile([1.0, -1.0], 30)[:, None], np.arange(60) // 20), NOISE),
    (trans_rate, (CONSTANT, THREE), 0),
    (trans_rate, (SAMPLES, ONE), 0),
    # Classes at -1 and 1: the whole and either class have a second moment of 1 about the common mean.
    (trans_rate, (2.0 * TWO[:, None], TWO), 0),
    # Along axes of their own, one feature is of use to one class only.
    (trans_rate, (np.eye(2)[TWO] * 2, TWO), 0),
    (knn_accuracy, (CONSTANT, LARGE), 0.7),
    (knn_accuracy, ([[1.0] * 3], [0]), 0),
    (parc, (CONSTANT, THREE), 0),
    (parc, (SAMPLES, ONE), 0),
    (parc, (SAMPLES[:, :1], THREE), 0),
    (parc, (SAMPLES[:2], [0, 1]), 0),
    (parc, (CONSTANT, THREE, 2000, 0, "released", 6), 0),
    (sfda, (CONSTANT, LARGE), 0.7**2 + 0.3**2),
    (sfda, (SAMPLES, ONE), 1),
    (etran_terms, (CONSTANT, LARGE), (0.1 + math.log(4), 0.7**2 + 0.3**2)),
    (etran_terms, (10_000 * CONSTANT, ONE), (1000 + math.log(4), 1)),
    (pactran, (SAMPLES, ONE), 0),
    (pactran, (CONSTANT, THREE, 1.0, 10.0, "published"), -math.log(3)),
    # Of the intercepts alone: samples of 3 classes with probabilities of 1/3.
    (pactran, (CONSTANT, THREE), -math.log(3) - OF_INTERCEPTS),
    # The larger class is predicted where there is no spread, and a class with one sample is missed once.
    (linear_probe_accuracy, (CONSTANT, LARGE), 0.7),
    (linear_probe_accuracy, (SAMPLES, ONE), 1),
    (linear_probe_accuracy, (EQUAL, np.arange(60) == 59, 60), 59 / 60),
    (n_leep, (CONSTANT, THREE), -math.log(3)),
    (n_leep, (SAMPLES, ONE), 0),
    (leep, (np.full((60, 5), 0.2), THREE), -math.log(3)),
    (leep, (to_probabilities(SAMPLES), ONE), 0),
    # Certain predictions have the NCE.
    (leep, (np.eye(5)[FIVE], LARGE), nce(FIVE, LARGE)),
    (nce, (THREE, ONE), 0),
    (nce, (ONE, LARGE), -entropy(LARGE)),
    (num_classes, ([0, 5, 5, 9],), 3),
    (parameter_count, (SourceFacts(parameters=11_689_512),), 11_689_512),
    (source_accuracy, (SourceFacts(accuracy=0.69758),), 0.69758),
]


def test_ends_of_the_ranges() -> None:
    wrong = []
    for metric, arguments, expected in ENDS:
        value = metric(*arguments)
        is_negative = value == 0 and math.copysign(1, value) < 0
        if is_negative or value != pytest.approx(expected, rel=1e-6, abs=1e-6 if metric is n_leep else 1e-10):
            wrong.append((metric, value, expected))
    assert not wrong


WRONG_PROBABILITIES = (
    [[0.5, 0.5], [0.5, 0.4]],
    [[0.5, 0.5], [math.nan, 0.4]],
    [[0.5, 0.5], [1.5, -0.5]],
    np.zeros((2, 0)),
)
FEATURES = SAMPLES[:30], THREE[:30]
REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (gbc, FEATURES, {"covariance": "full"}, "covariance must be spherical or diagonal, not 'full'"),
    (gbc, FEATURES, {"pca": 0}, "pca must be an integer of 1 or more, not 0"),
    (log_me, FEATURES, {"variant": "early"}, "variant must be released or published, not 'early'"),
    (n_leep, FEATURES, {"pca": None}, "pca must be above 0 and at most 1, not None"),
    (n_leep, FEATURES, {"components_per_class": 1.5}, "components_per_class must be an integer of 1 or more, not 1.5"),
    (n_leep, FEATURES, {"components_per_class": 11}, "components_per_class: 11 for each of 3 .* features have 30 rows"),
    (n_leep, FEATURES, {"seed": -1}, "seed must be an integer of 0 or more, not -1"),
    (knn_accuracy, FEATURES, {"neighbours": 0}, "neighbours must be an integer of 1 or more"),
    (linear_probe_accuracy, FEATURES, {"folds": 41}, "folds must be at most the number of samples, 30, not 41"),
    (pactran, FEATURES, {"penalty_share": 0}, "penalty_share must be above 0, not"),
    (parc, FEATURES, {"probes": 1}, "probes must be an integer of 2 or more"),
    (trans_rate, FEATURES, {"epsilon": float("nan")}, "epsilon must be above 0"),
    (ncti_terms, (SAMPLES, ONE), {}, "NCTI needs two classes and features that differ"),
    (leep, (WRONG_PROBABILITIES[0], [1, 0]), {}, "probabilities must .*row 1 sums to 0.9"),
    (leep, (WRONG_PROBABILITIES[1], [1, 0]), {}, "probabilities must .*row 1 sums to nan"),
    (leep, (WRONG_PROBABILITIES[2], [1, 0]), {}, "probabilities must be 0 or more, not -0.5"),
    (leep, (WRONG_PROBABILITIES[3], [1, 0]), {}, "probabilities must .*samples, source classes"),
    (nce, ([0.0, 0.5], [0, 1]), {}, "source_labels must be integers"),
    (nce, ([0, 1], [0, 1, 1]), {}, r"target_labels must be \[2\]"),
    (num_classes, (np.zeros(0, dtype=int),), {}, r"labels must be \[samples\], at least one"),
    (parameter_count, (SourceFacts(accuracy=0.5),), {}, "the number of the source's parameters is not known"),
    (source_accuracy, (SourceFacts(parameters=5),), {}, "the accuracy of the source on its own task is not known"),
]


def test_wrong_arguments_are_refused_by_name() -> None:
    wrong = []
    for metric, arguments, options, message in REFUSED:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
            metric(*arguments, **options)
        if not re.match(message, str(error.value)):
            wrong.append((metric, options, str(error.value)))
    assert not wrong, wrong

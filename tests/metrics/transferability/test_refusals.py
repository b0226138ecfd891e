"""Options that metrics refuse, by the messages that name them."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headstart.metrics.transferability.etran import etran_terms
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.trans_rate import trans_rate

REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (gbc, {"covariance": "full"}, "covariance must be spherical or diagonal, not 'full'"),
    (gbc, {"variant": "theirs"}, "variant must be textbook or released, not 'theirs'"),
    (gbc, {"pca": 0}, "pca must be an integer of 1 or more, not 0"),
    (log_me, {"variant": "early"}, "variant must be released or published, not 'early'"),
    (etran_terms, {"variant": None}, "variant must be released or published, not None"),
    (n_leep, {"pca": None}, "pca must be above 0 and at most 1, not None"),
    (n_leep, {"components_per_class": 1.5}, "components_per_class must be an integer of 1 or more, not 1.5"),
    (n_leep, {"components_per_class": 11}, "components_per_class: 11 for each of 3 classes .* features have 30 rows"),
    (n_leep, {"fits": 0}, "fits must be an integer of 1 or more, not 0"),
    (n_leep, {"seed": -1}, "seed must be an integer of 0 or more, not -1"),
    (knn_accuracy, {"neighbours": 0}, "neighbours must be an integer of 1 or more"),
    (linear_probe_accuracy, {"folds": 1}, "folds must be .*, not 1"),
    (linear_probe_accuracy, {"folds": 41}, "folds must be at most the number of samples, 30, not 41"),
    (pactran, {"penalty_share": 0}, "penalty_share must be above 0, not"),
    (pactran, {"prior_variance": None}, "prior_variance must be above 0, not"),
    (parc, {"probes": 1}, "probes must be an integer of 2 or more"),
    (parc, {"components": 1}, "components must be an integer of 2 or more"),
    (parc, {"variant": "textbook"}, "variant must be released or published, not 'textbook'"),
    (trans_rate, {"epsilon": float("nan")}, "epsilon must be above 0"),
]


def test_options_are_refused_by_name() -> None:
    labels = np.arange(30) % 3
    features = np.random.default_rng(0).standard_normal((30, 4)) + labels[:, None]
    wrong = []
    for metric, options, message in REFUSED:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
            metric(features, labels, **options)
        if not re.match(message, str(error.value)):
            wrong.append((metric, options, str(error.value)))
    assert not wrong, wrong

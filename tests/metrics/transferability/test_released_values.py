"""Metrics against the values that released programs give on random features and on those of photos."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from sklearn.decomposition import PCA

from headstart.metrics.transferability.discriminant_metrics import etran_terms, ncti_terms, sfda
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.trans_rate import trans_rate
from headstart.tests.material.released_values import CASES, PHOTOS, RANDOM, Case, load, needs_released_values

COMPONENTS = 32
PARC_OF_COMPONENTS = "PARC, 32 components (SFDA repository)"

pytestmark = needs_released_values


def shrunk_h_score(case: Case) -> float:
    """Divide the spread between classes by samples - 1 rather than samples, as the program does."""
    samples = case.statistics.samples
    return float(h_score(case.statistics, shrinkage=True) * samples / (samples - 1))


def nearest_by_distance(case: Case) -> float:
    """Shift samples far along one more axis, so that the cosine is highest where the distance is least."""
    centred = case.features - case.features.mean(0)
    far = np.full((len(centred), 1), 1000 * np.abs(centred).max())
    return knn_accuracy(np.hstack([centred, far]), case.labels, neighbours=1)


# The score, and its largest relative difference from the released value, on random features and on those of photos.
COMPARED: dict[str, tuple[Callable[[Case], float], float, float]] = {
    "h_score (TLlib)": (lambda case: h_score(case.statistics), 1e-12, 1e-12),
    "regularized_h_score (TLlib)": (shrunk_h_score, 1e-11, 1e-11),
    "leep (TLlib)": (lambda case: leep(case.probabilities, case.labels), 1e-12, 1e-12),
    "nce (TLlib)": (lambda case: nce(case.probabilities.argmax(1), case.labels), 1e-12, 1e-12),
    "log_me (TLlib, 11 steps)": (lambda case: log_me(case.statistics), 6e-5, 0.14),
    "trans_rate (TLlib)": (lambda case: trans_rate(case.statistics), 1e-11, 1e-11),
    "SFDA_Score (SFDA repository)": (lambda case: sfda(case.statistics), 4e-7, 1e-12),
    "PARC, all components (parc repository)": (lambda case: parc(case.statistics, variant="released"), 5e-5, 1e-12),
    PARC_OF_COMPONENTS: (lambda case: parc(case.statistics, variant="released", components=COMPONENTS), 0.012, 0.09),
    "1-NN (parc repository)": (nearest_by_distance, 1e-12, 1e-12),
    "NCTI seli": (lambda case: ncti_terms(case.statistics)[0], 1e-8, 0.015),
    "NCTI ncc": (lambda case: ncti_terms(case.statistics)[1], 1e-8, 0.007),
    "NCTI vc": (lambda case: ncti_terms(case.statistics)[2], 1e-8, 0.002),
    "ETran energy": (lambda case: etran_terms(case.statistics)[0], 1e-12, 1e-12),
    "ETran LDA_Score": (lambda case: etran_terms(case.statistics)[1], 1e-12, 1e-12),
    "PACTran Gauss, lambda 1, released sign reversed": (lambda case: pactran(case.statistics), 0.002, 0.003),
}


@cache
def compute(name: str, case: str) -> float:
    return COMPARED[name][0](load(case))


@pytest.mark.parametrize("case", CASES)
def test_as_the_released_programs(case: str) -> None:
    wrong = []
    for name, (_, random, photos) in COMPARED.items():
        released = load(case).values[name]
        # Programs have no value of so few features or samples.
        if released is None or np.isnan(released) or are_labels_rounded_otherwise(name, case):
            continue
        value = compute(name, case)
        if value != pytest.approx(released, rel=random if case in RANDOM else photos, abs=0):
            wrong.append((name, value, released))
    assert not wrong, wrong


@pytest.mark.parametrize("case", CASES[1:])
def test_parc_of_components_is_that_of_the_program_but_for_its_approximate_components(case: str) -> None:
    if are_labels_rounded_otherwise(PARC_OF_COMPONENTS, case):
        pytest.skip("this processor rounds otherwise than that of the released values")
    solver = PCA(COMPONENTS, svd_solver="randomized", random_state=1919, iterated_power=1)
    reduced = solver.fit_transform(load(case).features)
    expected = load(case).values[PARC_OF_COMPONENTS]
    assert parc(reduced, load(case).labels, variant="released") == pytest.approx(expected, rel=4e-5)


def test_sources_are_in_the_order_of_the_released_programs() -> None:
    for name in COMPARED:
        released = [load(case).values[name] for case in PHOTOS]
        # Some programs give all sources nearly the same value.
        if max(released) - min(released) >= 0.01 * max(map(abs, released)):
            order = np.argsort([compute(name, case) for case in PHOTOS])
            assert order.tolist() == np.argsort(released).tolist(), name


def test_n_leep_is_near_the_value_of_another_optimum_of_the_mixture() -> None:
    name = "LEEP on scikit-learn mixture, 5 components a class, PCA 0.8, seed 0"
    values = {case: n_leep(load(case).statistics) for case in CASES}
    assert values == pytest.approx({case: load(case).values[name] for case in CASES}, abs=0.1)


def are_labels_rounded_otherwise(name: str, case: str) -> bool:
    """Return whether the distances of labels have other rounding errors than on the processor of PARC's values."""
    is_rounded = name.startswith("PARC") and load(case).statistics.classes not in (2, 4)
    return is_rounded and len(np.unique(1 - np.corrcoef(np.eye(3)))) != 3

"""LogME at one of several maxima, where features explain a class wholly, and as released programs iterate it."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from headstart.metrics.transferability.log_me import log_me
from headstart.tests.material.metric_formulas import labelled, log_me_by_steps
from headstart.tests.material.released_values import CASES, load, needs_released_values


@needs_released_values
def test_a_released_program_differs_by_its_early_stop() -> None:
    for name in CASES:
        case = load(name)
        value = log_me_by_steps(case.features, case.labels, added=0)
        assert value == pytest.approx(case.values["log_me (TLlib, 11 steps)"], rel=1e-7), name


def test_of_several_maxima_it_is_at_the_one_that_the_published_iteration_reaches() -> None:
    # Either half of the features explains the classes, at weights of their own size.
    generator, labels = np.random.default_rng(0), np.arange(40) % 2
    x = generator.standard_normal((40, 10)) + 0.7 * generator.standard_normal((2, 10))[labels]
    x = x * np.repeat([100, 0.01], 5)
    scores = [log_me(scale * x, labels) for scale in (1, 100)]
    for scale, score in zip((1, 100), scores, strict=True):
        converged = log_me_by_steps(scale * x, labels, iterations=5000, tolerance=1e-12, added=0)
        assert score == pytest.approx(converged, rel=1e-6)
    assert abs(scores[0] - scores[1]) > 0.1


def test_rotations_scale_and_zeros_leave_it() -> None:
    x, labels = labelled(60, 8)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]
    for changed in (x @ rotation, 100 * x, np.hstack([x, np.zeros((60, 200))])):
        assert log_me(changed, labels) == pytest.approx(log_me(x, labels), rel=1e-8)


def test_the_released_variant_ranks_by_width_where_samples_are_few() -> None:
    x, labels = labelled(30, 8)
    x[:, -1] = x[:, 0]
    expected = log_me_by_steps(x, labels, tolerance=1e-3, lacks_terms=True)
    assert log_me(x, labels, "released") == pytest.approx(expected, rel=1e-9)
    narrow, wide = (log_me(*labelled(30, width), "released") for width in (40, 80))
    assert wide > narrow + 1


def test_targets_that_are_linear_in_few_features_have_the_evidence_of_what_rounding_leaves() -> None:
    labels = np.arange(30) % 3
    collapsed, noise = np.eye(3)[labels] * 2 + 1, np.random.default_rng(0).standard_normal((30, 3))
    scores = [log_me(collapsed + spread * noise, labels) for spread in (0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
    assert scores == sorted(scores, reverse=True)
    left, singular, _ = np.linalg.svd(collapsed, full_matrices=False)
    squares, residual = (left.T @ (labels == 0)) ** 2, 10 * 30 * np.finfo(float).eps

    def negative_evidence(logarithm: float) -> float:
        ratio = math.exp(logarithm)
        misfit = (squares * ratio / (ratio + singular**2)).sum() + residual
        return 15 * (math.log(2 * math.pi * misfit / 30) + 1) + float(np.log1p(singular**2 / ratio).sum()) / 2

    highest = -float(minimize_scalar(negative_evidence, bounds=(-60, 10), method="bounded").fun)
    assert scores[0] == pytest.approx(highest / 30, rel=1e-6)
    assert scores[1] == pytest.approx(scores[0], rel=1e-3)


@pytest.mark.parametrize(("copies", "other"), [(5, False), (1, True)])
def test_samples_that_are_there_twice_have_a_finite_score_that_goes_on_beside_them(copies: int, other: bool) -> None:
    # Fewer samples than features, of which some have those of the first, in its class or in the other one.
    x, labels = labelled(60, 200, 2)
    indices = np.flatnonzero((labels != labels[0]) == other)[1 : 1 + copies]
    x[indices] = x[0]
    score = log_me(x, labels)
    assert math.isfinite(score)
    noise = np.random.default_rng(1).standard_normal((copies, 200))
    for spread, tolerance in ((1e-12, 1e-6), (1e-9, 1e-3), (1e-7, 0.1)):
        beside = x.copy()
        beside[indices] += spread * noise
        assert log_me(beside, labels) == pytest.approx(score, abs=tolerance * copies)
    # Computed in 32 bits in another pass, a photo has other last digits.
    rounded = x.astype(np.float32)
    rounded[indices] *= 1 + np.float32(2**-23)
    assert log_me(rounded, labels) == pytest.approx(score, abs=0.1 * copies)
    assert log_me(torch.from_numpy(x), torch.from_numpy(labels)) == pytest.approx(score, rel=1e-9)


def test_one_sample_and_one_class_have_a_score() -> None:
    x, _ = labelled(40, 5)
    cases = [([[1.0, 2.0]], [3]), (x, [7] + [0] * 39), (x, [0] * 40), (np.full((30, 4), 0.1), [0] * 30)]
    assert np.isfinite([log_me(*case) for case in cases]).all()

"""LogME against scikit-learn's Bayesian ridge regression, the density of the target, and its limits."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.linear_model import BayesianRidge

from headstart.metrics.transferability.log_me import log_me
from headstart.tests.material.released_values import CASES, load, needs_released_values


def sample(samples: int, features: int, classes: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) % classes)
    return generator.standard_normal((samples, features)) + generator.standard_normal((classes, features))[
        labels
    ], labels


@pytest.mark.parametrize(("samples", "features", "classes"), [(60, 5, 3), (40, 40, 2), (30, 60, 3)])
def test_as_the_evidence_of_bayesian_ridge_regression(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    evidences = []
    for label in range(classes):
        # The same fixed point from the same start, in an implementation of its own.
        ridge = BayesianRidge(
            fit_intercept=False, compute_score=True, alpha_init=1, lambda_init=1, max_iter=3000, tol=1e-12,
            alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0,
        )  # fmt: skip
        evidences.append(ridge.fit(x, (labels == label).astype(float)).scores_[-1])
    assert log_me(x, labels) == pytest.approx(np.mean(evidences) / samples, rel=1e-6, abs=1e-7)


def released(
    features: NDArray[np.float64],
    labels: NDArray[np.int64],
    iterations: int = 11,
    tolerance: float = 1e-2,
    added: float = 1e-5,
) -> float:
    """Follow the form in which scores have been released: stopped early, with 1e-5 in both denominators."""
    samples, dimensions = features.shape
    left, singular, _ = np.linalg.svd(features, full_matrices=False)
    squares = singular**2
    evidences = []
    for label in np.unique(labels):
        target = (labels == label).astype(float)
        x = (left.T @ target) ** 2
        alpha = beta = 1.0
        for _ in range(iterations):
            ratio = alpha / beta
            gamma = (squares / (squares + ratio)).sum()
            norm = (squares * x / (squares + ratio) ** 2).sum()
            error = (x / (1 + squares / ratio) ** 2).sum() + (target @ target - x.sum())
            alpha, beta = gamma / (norm + added), (samples - gamma) / (error + added)
            if abs(alpha / beta - ratio) / ratio <= tolerance:
                break
        determinant = np.log(alpha + beta * squares).sum() + (dimensions - len(squares)) * math.log(alpha)
        evidence = samples * math.log(beta / (2 * math.pi)) + dimensions * math.log(alpha) - determinant
        evidences.append(float(evidence - beta * error - alpha * norm) / 2)
    return float(np.mean(evidences)) / len(features)


@needs_released_values
@pytest.mark.parametrize("case", CASES)
def test_a_released_program_differs_by_its_early_stop(case: str) -> None:
    value = load(case).values["log_me (TLlib, 11 steps)"]
    assert released(load(case).features, load(case).labels, added=0) == pytest.approx(value, rel=1e-7)


def test_of_several_maxima_it_is_at_the_one_that_the_published_iteration_reaches() -> None:
    # Either half of the features explains the classes, at weights of their own size.
    generator, labels = np.random.default_rng(0), np.arange(40) % 2
    x = generator.standard_normal((40, 10)) + 0.7 * generator.standard_normal((2, 10))[labels]
    x = x * np.repeat([100, 0.01], 5)
    scores = [log_me(scale * x, labels) for scale in (1, 100)]
    for scale, score in zip((1, 100), scores, strict=True):
        converged = released(scale * x, labels, iterations=5000, tolerance=1e-12, added=0)
        assert score == pytest.approx(converged, rel=1e-6)
    assert abs(scores[0] - scores[1]) > 0.1


def test_rotations_and_scale_leave_it() -> None:
    x, labels = sample(60, 8, 3)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]
    assert log_me(x @ rotation, labels) == pytest.approx(log_me(x, labels), rel=1e-10)
    assert log_me(100 * x, labels) == pytest.approx(log_me(x, labels), rel=1e-8)
    padded = np.hstack([x, np.zeros((60, 200))])
    assert log_me(padded, labels) == pytest.approx(log_me(x, labels), rel=1e-8)


def test_features_without_any_information_give_the_evidence_of_noise() -> None:
    labels = np.arange(30) % 3
    expected = 0.5 * math.log(30 / (2 * math.pi * 10)) - 0.5
    assert log_me(np.zeros((30, 4)), labels) == pytest.approx(expected, rel=1e-12)
    # Orthogonal to every target: the precision of the weights grows without bound.
    orthogonal = np.tile([1.0, -1.0], 15)[:, None]
    assert log_me(orthogonal, np.arange(30) // 10) == pytest.approx(expected, rel=1e-8)


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
    assert math.isfinite(log_me(np.full((30, 4), 0.1), np.zeros(30, dtype=int)))


def twice(copies: int, other: bool = False) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return fewer samples than features, of which some have those of the first, in its class or in the other one."""
    x, labels = sample(60, 200, 2)
    indices = np.flatnonzero((labels != labels[0]) == other)[1 : 1 + copies]
    x[indices] = x[0]
    return x, labels, indices


@pytest.mark.parametrize(("copies", "other"), [(5, False), (1, True)])
def test_samples_that_are_there_twice_have_a_finite_score_that_goes_on_beside_them(copies: int, other: bool) -> None:
    x, labels, indices = twice(copies, other)
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
    tensors = torch.from_numpy(x), torch.from_numpy(labels)
    assert log_me(*tensors) == pytest.approx(score, rel=1e-9)


def test_one_sample_and_one_class() -> None:
    assert math.isfinite(log_me(np.array([[1.0, 2.0]]), np.array([3])))
    x, labels = sample(40, 5, 2)
    labels[0] = 7
    assert math.isfinite(log_me(x, labels))
    assert math.isfinite(log_me(x, np.zeros(40, dtype=int)))


def released_evidence(x: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Compute the evidence of one target by the singular vectors of the features themselves."""
    samples, dimensions = x.shape
    left, singular, _ = np.linalg.svd(x, full_matrices=False)
    if samples > dimensions:
        left, singular = left[:, singular > 1e-10], singular[singular > 1e-10]
    squares, projected = singular**2, left.T @ target
    alpha = beta = 1.0
    for _ in range(11):
        before = alpha / beta
        weights = singular * projected / (before + squares)
        misfit = target - left @ (projected * squares / (before + squares))
        effective = (squares / (squares + before)).sum()
        alpha = effective / (weights @ weights + 1e-5)
        beta = (samples - effective) / (misfit @ misfit + 1e-5)
        if abs(alpha / beta - before) <= 1e-3 * before:
            break
    terms = dimensions * np.log(alpha) + samples * np.log(beta) - np.log(alpha + beta * squares).sum()
    return float((terms - beta * misfit @ misfit - alpha * weights @ weights) / samples - np.log(2 * np.pi)) / 2


def test_the_released_variant_lacks_terms_of_the_determinant_where_samples_are_few() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(30) % 3
    scores = {}
    for dimensions in (8, 40, 80):
        x = generator.normal(size=(30, dimensions)) + generator.normal(size=(3, dimensions))[labels]
        if dimensions == 8:
            x[:, -1] = x[:, 0]
        expected = np.mean([released_evidence(x, (labels == label).astype(float)) for label in range(3)])
        scores[dimensions] = log_me(x, labels, "released")
        assert scores[dimensions] == pytest.approx(expected, rel=1e-9)
    assert scores[80] > scores[40] + 1

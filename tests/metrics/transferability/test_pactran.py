"""PACTran by scikit-learn's logistic regression: the bound at the best posterior, and the released program's terms."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from headstart.metrics.transferability.pactran import pactran


def sample(samples: int, features: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) % classes)
    centres = generator.standard_normal((classes, features))
    return generator.standard_normal((samples, features)) + centres[labels] + 2, labels


def trace_of_hessian(x: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Differentiate the mean cross-entropy twice by the weights but for the intercepts, which stand last."""
    rows, target = torch.from_numpy(np.hstack([x, np.ones((len(x), 1))])), torch.from_numpy(labels)

    def loss(flat: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(rows @ flat.reshape(weights.shape), target)

    hessian = torch.autograd.functional.hessian(loss, torch.from_numpy(weights.ravel()))
    return float(hessian.diagonal().reshape(weights.shape)[:-1].sum())


@pytest.mark.parametrize("options", [{}, {"penalty_share": 0.1, "prior_variance": 100.0}])
@pytest.mark.parametrize(("samples", "features", "classes"), [(90, 5, 3), (20, 30, 4)])
def test_as_the_bound_at_the_best_posterior(
    samples: int, features: int, classes: int, options: dict[str, float]
) -> None:
    x, labels = sample(samples, features, classes)
    share, variance = options.get("penalty_share", 1.0), options.get("prior_variance", 10.0) / features
    centred = x - x.mean(0)
    model = LogisticRegression(C=share, tol=1e-10, max_iter=10_000).fit(centred, labels)
    weights = np.vstack([model.coef_.T, model.intercept_])
    trace = trace_of_hessian(centred, labels, weights)
    size, parameter = features * classes, share * samples / variance

    def bound(logarithm: float) -> float:
        ratio = math.exp(logarithm)  # of the variances of the posterior and the prior
        divergence = size * (ratio - 1 - logarithm) / 2 + float((model.coef_**2).sum()) / (2 * variance)
        return ratio * variance * trace / 2 + divergence / parameter

    least = minimize_scalar(bound, bounds=(-30, 10), method="bounded", options={"xatol": 1e-9})
    expected = -(log_loss(labels, model.predict_proba(centred)) + float(least.fun))
    assert pactran(x, labels, **options, variant="published") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("samples", "features", "classes"), [(90, 5, 3), (20, 30, 4)])
def test_as_the_released_program_where_its_optimiser_converges(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    centred = x - x.mean(0)
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(centred, labels)
    probabilities = model.predict_proba(centred)
    optimum = log_loss(labels, probabilities) + float((model.coef_**2).sum()) / (2 * samples)

    # Of the weights, with the curvature of the penalty, and of the intercepts.
    curvature = probabilities - probabilities**2
    trace = ((centred**2).T @ curvature + 1 / samples).sum() + curvature.sum()
    size, variance = features * classes, 10 / features
    flatness = size / samples * variance * math.log(trace * samples / size) / 2
    assert pactran(x, labels) == pytest.approx(-(optimum + flatness), rel=1e-6)


def test_its_ends() -> None:
    x, labels = sample(90, 5, 3)
    assert pactran(x, np.zeros(90, dtype=int)) == 0
    constant = np.full((90, 4), 0.1)
    assert pactran(constant, labels, variant="published") == pytest.approx(-math.log(3), rel=1e-6)
    # Of the intercepts alone: 90 samples of 3 classes with probabilities of 1/3.
    flatness = 3 / 90 * 10 * math.log1p(90 * 90 * 2 / 3 / 12) / 2
    assert pactran(constant, labels) == pytest.approx(-math.log(3) - flatness, rel=1e-6)
    assert pactran(x, labels) < pactran(x, labels, variant="published") < 0

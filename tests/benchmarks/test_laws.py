"""Laws that forecasts are compared with, on curves that follow them and against scikit-learn."""

from importlib import import_module

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import QuantileRegressor

from headstart.tests.material.root import require_checkout

require_checkout()
laws = import_module("headstart.benchmarks.coverage.laws")
LABELS = np.array([5, 7, 10, 14, 20, 28, 40])


@pytest.mark.parametrize("piecewise", [False, True])
def test_a_power_law_finds_itself(piecewise: bool) -> None:
    curves = np.stack([1 - 0.9 * LABELS**-0.3, 1 - 0.5 * LABELS**-0.1])
    later = laws.own_power_law(LABELS, curves, 160, piecewise=piecewise)
    np.testing.assert_allclose(later, [1 - 0.9 * 160**-0.3, 1 - 0.5 * 160**-0.1])


def test_a_piecewise_law_goes_on_with_its_last_slope() -> None:
    logs = np.log(LABELS / 40)
    accuracies = 1 - np.exp(-1 - 0.3 * logs - 0.05 * logs**2)
    later = laws.own_power_law(LABELS, accuracies[None], 80, piecewise=True)
    assert later == pytest.approx(1 - np.exp(-1 - 0.3 * np.log(2)))


def test_an_exponential_finds_itself() -> None:
    later = laws.own_exponential(LABELS, 1 - (0.2 + 0.5 * np.exp(-LABELS / 20))[None], 80)
    assert later == pytest.approx(1 - 0.2 - 0.5 * np.exp(-4))


def test_the_gaussian_process_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    means = np.tile(-0.3 * np.log(LABELS), (6, 1))
    curves = 1 - np.exp(means + generator.normal(0, 0.2, (6, 1)) + generator.normal(0, 0.03, (6, len(LABELS))))
    process = laws.GaussianProcess(LABELS, curves, np.ones(6), means)
    logs = process.logs[:, None]
    kernels = [
        ConstantKernel(level**2)
        + ConstantKernel(slope**2) * DotProduct(0)
        + ConstantKernel(smooth**2) * RBF(length)
        + WhiteKernel(rough**2)
        for level in (0.3, 0.6)
        for slope in (0.05, 0.15)
        for smooth in (0.05, 0.15)
        for length in (0.5, 1.5)
        for rough in (0.03, 0.08)
    ]
    targets = np.log(1 - curves) - means

    def likelihood(kernel: object) -> float:
        fitted = (GaussianProcessRegressor(kernel, optimizer=None).fit(logs, each) for each in targets)
        return float(sum(each.log_marginal_likelihood_value_ for each in fitted))

    best = max(kernels, key=likelihood)
    np.testing.assert_allclose(process.covariance, best(logs), rtol=1e-9)
    other = GaussianProcessRegressor(best, optimizer=None).fit(logs[:4], targets[0, :4])
    mean, deviation = other.predict(logs[6:], return_std=True)
    expected, own_deviation = process.forecast(4, 6, curves[:1], means[:1])
    assert expected == pytest.approx(1 - np.exp(means[0, 6] + mean))
    assert own_deviation == pytest.approx(deviation)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_regression_is_near_that_of_scikit_learn(level: float) -> None:
    generator = np.random.default_rng(1)
    design = np.column_stack([np.ones(400), generator.standard_normal((400, 2))])
    values = design @ [1, 2, -1] + generator.standard_t(3, 400)
    other = QuantileRegressor(quantile=level, alpha=0, fit_intercept=False).fit(design, values)
    found = laws.linear_quantile(design, values, level, np.ones(400), np.zeros(3))
    np.testing.assert_allclose(found, other.coef_, atol=0.1)

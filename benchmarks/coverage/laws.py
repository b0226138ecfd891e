"""Simpler laws of learning curves, and other models of them, which forecasts are compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.forecast.forecaster import Cases, data_set_weights, design_of
from headstart.metrics.forecast.known_curves import KnownCurves
from headstart.metrics.forecast.observations import log_error

# Steepest and flattest exponent that a curve's own law may have.
STEEPEST = -2.0
# Scales of an exponential, in labels known.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


def own_power_law(labels: NDArray[np.int64], accuracies: Floats, later: float, piecewise: bool = False) -> Floats:
    """Return accuracies by a power law fitted to each curve's own beginning.

    Source: Achin Jain, Gurumurthy Swaminathan, Paolo Favaro and others, "A Meta-Learning Approach to Predicting
    Performance and Data Requirements", CVPR, 2023 (arXiv 2303.01598), for the piecewise form. The logarithm of the
    error is quadratic in that of the labels, and linear from a switch on. Here the switch is the last label.

    Args:
        labels: Numbers of labels, `[labels]`.
        accuracies: Accuracies there, `[curves, labels]`.
        later: The number of labels to forecast at.
        piecewise: Whether the law is piecewise.

    Returns:
        `[curves]`.
    """
    logs, errors = np.log(labels / labels[-1]), log_error(accuracies)
    degree = 2 if piecewise and len(labels) > 3 else 1
    coefficients = np.linalg.lstsq(np.vander(logs, degree + 1), errors.T, rcond=None)[0]
    slope = np.clip(coefficients[-2], STEEPEST, 0)
    return np.asarray(1 - np.exp(np.minimum(coefficients[-1] + slope * np.log(later / labels[-1]), 0)))


def own_exponential(labels: NDArray[np.int64], accuracies: Floats, later: float) -> Floats:
    """Return accuracies by an exponential that tends to an error of its own: a + b exp(-n / scale).

    Arguments and returned values as for `own_power_law`. Of some scales that is taken whose squared errors are least.
    """
    best, forecasts = np.full(len(accuracies), np.inf), np.empty(len(accuracies))
    for scale in SCALES:
        design = np.column_stack([np.ones(len(labels)), np.exp(-labels / (scale * labels[-1]))])
        coefficients = np.linalg.lstsq(design, 1 - accuracies.T, rcond=None)[0]
        squares = ((design @ coefficients + accuracies.T - 1) ** 2).sum(0)
        error = coefficients[0] + np.maximum(coefficients[1], 0) * np.exp(-later / (scale * labels[-1]))
        forecasts = np.where(squares < best, 1 - np.clip(error, 0, 1), forecasts)
        best = np.minimum(squares, best)
    return forecasts


class GaussianProcess:
    """A Gaussian process over the logarithm of labels, for the logarithm of the error.

    Its mean is the mean of known curves. Its covariance is a level, a slope, a smooth and a rough part. Their sizes are
    chosen from a grid: those under which known curves are most likely.

    Source: Carl Edward Rasmussen and Christopher K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press,
    2006, equations 2.22 to 2.24 and 5.8.

    Args:
        labels: Numbers of labels, `[labels]`.
        accuracies: Known curves without a gap, `[curves, labels]`.
        weights: Weight of each, `[curves]`.
        means: Mean logarithm of the error for every known curve, which is subtracted, `[curves, labels]`.
    """

    def __init__(self, labels: NDArray[np.int64], accuracies: Floats, weights: Floats, means: Floats) -> None:
        self.logs = np.log(labels / 30)
        residuals, most = log_error(accuracies) - means, -np.inf
        for level, slope, smooth, length, rough in product(
            (0.3, 0.6), (0.05, 0.15), (0.05, 0.15), (0.5, 1.5), (0.03, 0.08)
        ):
            apart = self.logs[:, None] - self.logs
            covariance = (
                level**2
                + slope**2 * np.outer(self.logs, self.logs)
                + smooth**2 * np.exp(-(apart**2) / (2 * length**2))
                + rough**2 * np.eye(len(labels))
            )
            factor = np.linalg.cholesky(covariance)
            whitened = np.linalg.solve(factor, residuals.T)
            likelihood = -(weights * (whitened**2).sum(0)).sum() / 2 - weights.sum() * np.log(np.diag(factor)).sum()
            if likelihood > most:
                most, self.covariance = likelihood, covariance

    def forecast(self, known: int, later: int, accuracies: Floats, means: Floats) -> tuple[Floats, float]:
        """Return accuracies expected at a later column, and the standard deviation of the logarithm of the error.

        Args:
            known: Number of columns that are known.
            later: Index of the column to forecast at.
            accuracies: Curves, of which the first columns are read, `[curves, labels]`.
            means: Mean logarithm of the error, `[curves, labels]`.
        """
        gain = np.linalg.solve(self.covariance[:known, :known], self.covariance[:known, later])
        residuals = log_error(accuracies[:, :known]) - means[:, :known]
        variance = self.covariance[later, later] - gain @ self.covariance[:known, later]
        return 1 - np.exp(np.minimum(means[:, later] + residuals @ gain, 0)), float(variance**0.5)


def linear_quantile(design: Floats, values: Floats, level: float, weights: Floats, penalty: Floats) -> Floats:
    """Return the coefficients of a linear quantile regression, by least squares that are weighted anew 40 times.

    Sources: Roger Koenker and Gilbert Bassett, "Regression Quantiles", Econometrica, 1978; David R. Hunter and Kenneth
    Lange, "Quantile Regression via an MM Algorithm", Journal of Computational and
    Graphical Statistics, 2000.

    Args:
        design: `[cases, columns]`.
        values: `[cases]`.
        level: The quantile, such as 0.1.
        weights: Weight of each case, `[cases]`.
        penalty: Ridge penalty of each coefficient, `[columns]`.
    """
    coefficients = np.zeros(design.shape[1])
    for _ in range(40):
        residuals = values - design @ coefficients
        steps = weights / (abs(residuals) + 0.01)
        right = design.T @ (steps * values + weights * (2 * level - 1))
        gram = (design * steps[:, None]).T @ design
        coefficients = np.asarray(np.linalg.solve(gram + np.diag(penalty), right))
    return coefficients


def by_curves(cases: Cases, curves: KnownCurves, law: Callable[..., Floats]) -> Floats:
    """Return accuracies by a law that is fitted to each curve's own beginning, `[cases]`."""
    forecasts = np.empty(len(cases.ratios))
    for chosen, known, later, accuracies in _groups(cases, curves):
        labels = curves.labels[:known]
        forecasts[chosen] = law(labels, accuracies[:, :known], curves.labels[later])
    return forecasts


def _groups(cases: Cases, curves: KnownCurves) -> list[tuple[Flags, int, int, Floats]]:
    """Return cases of one number of labels, later number and number of orderings, with their mean curves."""
    seen = cases.observed
    keys = np.column_stack([seen.orderings, seen.labels, np.round(seen.labels * cases.ratios)])
    groups = []
    for orderings, labels, later in np.unique(keys, axis=0):
        chosen = (keys == (orderings, labels, later)).all(1)
        accuracies = curves.accuracies[cases.curves[chosen], : int(orderings)].mean(1)
        known, end = (int(np.searchsorted(curves.labels, each)) for each in (labels, later))
        groups.append((chosen, known + 1, end, accuracies))
    return groups


def by_gaussian_process(cases: Cases, curves: KnownCurves) -> Floats:
    """Return accuracies by a Gaussian process on the curves of other data sets, `[cases]`."""
    forecasts = np.empty(len(cases.ratios))
    errors = log_error(np.where(np.isnan(curves.accuracies), 1, curves.accuracies).mean(1))
    errors[np.isnan(curves.accuracies).any(1)] = np.nan
    for data_set in np.unique(cases.data_sets):
        others = curves.data_sets != data_set
        whole = others & ~np.isnan(errors).any(1)
        of = {name: np.nanmean(errors[others & (curves.methods == name)], axis=0) for name in np.unique(curves.methods)}
        means = np.stack([of[name] for name in curves.methods])
        weights = np.full(whole.sum(), 1 / len(of))
        process = GaussianProcess(curves.labels, 1 - np.exp(errors[whole]), weights, means[whole])
        own = np.flatnonzero(cases.data_sets == data_set)
        part = cases.where(cases.data_sets == data_set)
        for chosen, known, later, accuracies in _groups(part, curves):
            rows = part.curves[chosen]
            forecasts[own[chosen]] = process.forecast(known, later, accuracies, means[rows])[0]
    return forecasts


def by_one_exponent(cases: Cases) -> Floats:
    """Return accuracies by one exponent for all curves, which is fitted to other data sets, `[cases]`."""
    change, distance = log_error(cases.accuracies) - cases.observed.level, np.log(cases.ratios)
    found = np.empty(len(distance))
    for data_set in np.unique(cases.data_sets):
        own = cases.data_sets == data_set
        weights = data_set_weights(cases.data_sets[~own])
        exponent = (weights * change[~own] * distance[~own]).sum() / (weights * distance[~own] ** 2).sum()
        found[own] = 1 - np.exp(np.minimum(cases.observed.level[own] + exponent * distance[own], 0))
    return found


def by_quantiles(cases: Cases, level: float = 0.8) -> tuple[Floats, Floats]:
    """Return medians, `[cases]`, and intervals, `[2, cases]`, by quantile regression on other data sets."""
    methods, found = np.unique(cases.methods), np.empty((3, len(cases.ratios)))
    for data_set in np.unique(cases.data_sets):
        own = cases.data_sets == data_set
        others, left_out = cases.where(~own), cases.where(own)
        values = log_error(others.accuracies) - others.observed.level
        design, new = design_of(others, methods), design_of(left_out, methods)
        penalty = np.full(design.shape[1], 0.1)
        for row, quantile in enumerate((0.5, (1 + level) / 2, (1 - level) / 2)):
            change = new @ linear_quantile(design, values, quantile, data_set_weights(others.data_sets), penalty)
            found[row, own] = 1 - np.exp(np.minimum(left_out.observed.level + change, 0))
    return found[0], found[1:]


def laws(cases: Cases, curves: KnownCurves) -> dict[str, Floats]:
    """Return the accuracies that other laws and models forecast, by their names."""
    error = np.exp(cases.observed.level)
    return {
        "as accurate as now": 1 - error,
        "twice the labels halve the error": 1 - error / cases.ratios,
        "error x n^-0.25": 1 - error * cases.ratios**-0.25,
        "one exponent of other data sets": by_one_exponent(cases),
        "own power law": by_curves(cases, curves, own_power_law),
        "own piecewise power law": by_curves(cases, curves, partial(own_power_law, piecewise=True)),
        "own exponential": by_curves(cases, curves, own_exponential),
        "Gaussian process": by_gaussian_process(cases, curves),
        "quantile regression": by_quantiles(cases)[0],
    }

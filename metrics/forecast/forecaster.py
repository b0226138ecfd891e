"""Forecasts of accuracy at more labels: an exponent pooled over data sets, with conformal intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.forecast.known_curves import CURVE

# The window of a slope: so many points between half of the labels and all of them, evenly spaced by their logarithm.
POINTS = 5
# An error below this one is taken as this one, so that its logarithm exists.
LEAST_ERROR = 0.005
# Numbers of labels after which the known curves are forecast, and how many times as many labels they are forecast at.
KNOWN = (10, 20, 50, 100)
RATIOS = (1.4, 2, 4, 8)
FURTHEST = 8
# A number of labels in the middle of `KNOWN`.
MIDDLE = 30
# The most classes of a known curve.
MOST_CLASSES = 19
# Coverage that intervals promise.
LEVELS = (0.8, 0.95)
# Added to the sizes of errors, so that their logarithms exist.
LEAST_RESIDUAL = 0.02
# Prior standard deviations of the coefficients in `design_of`, the last one of the effects of methods.
PRIOR = (1.0, 0.5, 0.5, 0.05, 0.1, 0.1)
# Standard deviation of what a data set adds to the change of the error.
NOISE = 0.15
# The same of the coefficients in `scale_design_of`.
SCALE_PRIOR = (3.0, 1.0, 1.0, 1.0, 3.0, 0.2, 0.3)
# The same of the size of a forecast's error.
SCALE_NOISE = 0.5


def log_error(accuracy: Floats) -> Floats:
    """Return the logarithm of the error, `LEAST_ERROR` at least, of accuracies of any shape."""
    return np.asarray(np.log(np.maximum(1 - accuracy, LEAST_ERROR)))


def observe(
    labels: NDArray[np.int64], accuracies: Floats, known: int, classes: NDArray[np.int64], orderings: int
) -> pd.DataFrame:
    """Return what is known of curves after some labels.

    Args:
        labels: Numbers of labels of the curves, ascending, `[labels]`.
        accuracies: Mean accuracies over orderings, `[curves, labels]`; what lies behind `known` is not read.
        known: The number of labels that are known, one of `labels` at least.
        classes: Number of classes, `[curves]`.
        orderings: Number of orderings that were averaged.

    Returns:
        A row for each curve: `labels`, the number of labels; `level`, the logarithm of the error there; `slope`, the
        slope of that logarithm over that of the labels within the window; `chance`, the logarithm of the error of
        guessing; `orderings`.
    """
    last = int(np.searchsorted(labels, known, side="right")) - 1
    wanted = labels[last] * 2 ** (-np.arange(POINTS) / (POINTS - 1))
    # The last evaluation that had seen no more labels.
    columns = np.maximum(np.searchsorted(labels, np.round(wanted), side="right") - 1, 0)
    errors = log_error(accuracies[:, columns])
    logs = np.log(labels[columns])
    centred = logs - logs.mean()
    spread = float((centred**2).sum())
    slope = errors @ centred / spread if spread else np.zeros(len(errors))
    chance = np.log(1 - 1 / classes)
    level = errors[:, 0]
    return pd.DataFrame(
        {"labels": float(labels[last]), "level": level, "slope": slope, "chance": chance, "orderings": float(orderings)}
    )


def known_cases(curves: pd.DataFrame, known: Sequence[int] = KNOWN, ratios: Sequence[float] = RATIOS) -> pd.DataFrame:
    """Return all forecasts that known curves allow, of the mean over all orderings and of the first alone.

    Args:
        curves: The curves, as `read_curves` returns them.
        known: Numbers of labels after which to forecast.
        ratios: How many times as many labels to forecast at; the nearest number with an evaluation is taken.

    Returns:
        A row for each case: the columns of `observe`; `data_set`, `source` and `method`, names; `ratio`, how many times
        as many labels; `accuracy`, that at so many labels.
    """
    labels, parts = curves.columns.to_numpy(), list[pd.DataFrame]()
    by_curve = curves.groupby(level=CURVE, sort=False)
    whole = int(by_curve.size().max())
    for orderings in sorted({1, min(2, whole), whole}):
        means = by_curve.head(orderings).groupby(level=CURVE, sort=False).mean()
        accuracies, of_curves = means.to_numpy(), means.index.to_frame(index=False)
        for at in known:
            observed = observe(labels, accuracies, at, of_curves["classes"].to_numpy(), orderings)
            observed = observed.join(of_curves[["data_set", "source", "method"]])
            for ratio in ratios:
                column = int(np.abs(np.log(labels / (at * ratio))).argmin())
                exact = labels[column] / at
                if abs(exact / ratio - 1) < 0.15:
                    parts.append(observed.assign(ratio=exact, accuracy=accuracies[:, column]).dropna())
    return pd.concat(parts, ignore_index=True)


class Regression:
    """A regression in which every data set counts as one observation, and coefficients have a normal prior around 0.

    Args:
        design: `[cases, columns]`.
        values: `[cases]`.
        cases: The cases.
        deviations: Prior standard deviations of the first coefficients, the last one also of all that follow.
        noise: Standard deviation of what a data set has of its own.
    """

    def __init__(
        self, design: Floats, values: Floats, cases: pd.DataFrame, deviations: Sequence[float], noise: float
    ) -> None:
        self.design = design
        _, self.data_sets = np.unique(cases["data_set"], return_inverse=True)
        rows = [self.data_sets == index for index in range(self.data_sets.max() + 1)]
        self.grams = np.stack([design[selected].T @ design[selected] / selected.sum() for selected in rows])
        self.moments = np.stack([design[selected].T @ values[selected] / selected.sum() for selected in rows])
        every = np.append(deviations, np.full(design.shape[1] - len(deviations), deviations[-1]))
        self.penalty = np.diag((noise / every) ** 2)

    @property
    def coefficients(self) -> Floats:
        """The coefficients that are most likely, `[columns]`."""
        return np.asarray(np.linalg.solve(self.grams.sum(0) + self.penalty, self.moments.sum(0)))

    def without_own_data_set(self) -> Floats:
        """Return what coefficients from the other data sets expect of each case, `[cases]`."""
        grams, moments = (parts.sum(0) - parts for parts in (self.grams, self.moments))
        coefficients = np.linalg.solve(grams + self.penalty, moments[..., None])[..., 0]
        return np.asarray(np.einsum("nc,nc->n", self.design, coefficients[self.data_sets]))


class Forecaster:
    """Forecasts from the curves of other data sets.

    The error is a power law from the last known label on. Its exponent is pooled over data sets by a ridge regression.
    The predictors are the number of known labels, the number of classes, the curve's own slope and the method, whose
    effects are drawn towards 0. A second regression predicts the size of a forecast's error. Intervals are wide enough
    to hold the promised share of errors on other data sets, where each forecast leaves its own data set out. They are
    wider where the errors of a method after about as many labels require it.

    Sources: for the power law, Corinna Cortes, Lawrence D. Jackel, Sara A. Solla, Vladimir Vapnik and John S. Denker,
    "Learning Curves: Asymptotic Values and Rate of Convergence", NIPS, 1993. For conformal intervals of varying width,
    Jing Lei, Max G'Sell, Alessandro Rinaldo, Ryan J. Tibshirani and Larry Wasserman, "Distribution-Free Predictive
    Inference for Regression", JASA, 2018, section 5.2. For pooling groups of equal weight, Robin Dunn, Larry Wasserman
    and Aaditya Ramdas, "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", JASA, 2023, section 3.

    Args:
        cases: Forecasts on known curves with their true accuracies, of at least two data sets, as `known_cases` returns
            them.

    Attributes:
        methods: Names of the known methods, sorted.
        factors: By how much intervals are wider than the expected size of an error, by level, `[methods, KNOWN]`.
    """

    def __init__(self, cases: pd.DataFrame) -> None:
        self.cases = cases
        self.methods = np.unique(cases["method"].to_numpy(np.str_))

        # The change of the logarithm of the error, and the errors of its forecasts without the data set, `[cases]`.
        error = log_error(_values(cases, "accuracy"))
        change = error - _values(cases, "level")
        self._change = Regression(design_of(cases, self.methods), change, cases, PRIOR, NOISE)
        left_out = abs(error - _expected(cases, self._change.without_own_data_set()))

        # The logarithm of the size of such an error, and the errors in units of the size expected without the data set.
        sizes = np.log(left_out + LEAST_RESIDUAL)
        self._size = Regression(scale_design_of(cases, self.methods), sizes, cases, SCALE_PRIOR, SCALE_NOISE)
        self._scores = left_out / np.exp(self._size.without_own_data_set())
        self.factors = {level: self._find_factors(level) for level in LEVELS}

    def forecast(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Return cases with their forecasts; their true accuracies are not read.

        The columns are `expected`, the accuracy, and for each level that is promised the ends of its interval, as
        `ends_of` names them.
        """
        errors = _expected(cases, design_of(cases, self.methods) @ self._change.coefficients)
        scale = np.exp(scale_design_of(cases, self.methods) @ self._size.coefficients)
        # The last row is that of unknown methods.
        rows = pd.Index(self.methods).get_indexer(cases["method"])
        at = np.interp(np.log(cases["labels"]), np.log(KNOWN), np.arange(len(KNOWN)))
        below, above, share = at.astype(np.int64), np.ceil(at).astype(np.int64), at % 1

        forecasts = cases.assign(expected=accuracy_of(errors))
        for level, factors in self.factors.items():
            of_methods = np.vstack([factors, factors.max(0)])
            reach = scale * ((1 - share) * of_methods[rows, below] + share * of_methods[rows, above])
            forecasts[ends_of(level)] = accuracy_of(np.column_stack([errors + reach, errors - reach]))
        return forecasts

    def _find_factors(self, level: float) -> Floats:
        """Return by how much intervals are wider than the expected size of an error, `[methods, KNOWN]`."""
        at, names = _nearest_known(self.cases), _values(self.cases, "method")
        pooled = self._quantile(at >= 0, level)
        groups = [[(names == name) & (at == column) for column in range(len(KNOWN))] for name in self.methods]
        quantiles = [[self._quantile(group, level) if group.any() else pooled for group in row] for row in groups]
        return np.maximum(pooled, quantiles)

    def _quantile(self, chosen: Flags, level: float) -> float:
        """Return the quantile of the scores of chosen cases, every data set counting alike."""
        weights = data_set_weights(self.cases["data_set"][chosen])
        return weighted_quantile(self._scores[chosen], weights, level)


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the smallest value such that the values up to it have this share of all weights."""
    order = np.argsort(values)
    shares = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(shares, level)), len(values) - 1)])


def ends_of(level: float) -> list[str]:
    """Return the columns of the lower and the upper end of intervals that promise this coverage."""
    return [f"low_{level}", f"high_{level}"]


def data_set_weights(data_sets: pd.Series[str]) -> Floats:
    """Return weights with which every data set counts alike, 1 in all for each, `[cases]`."""
    return np.asarray(1 / data_sets.groupby(data_sets).transform("size"))


def _values(cases: pd.DataFrame, column: str) -> NDArray[Any]:
    return np.asarray(cases[column])


def _nearest_known(cases: pd.DataFrame) -> Indices:
    """Return the column of `KNOWN` whose number of labels is the nearest by its logarithm, `[cases]`."""
    return np.asarray(np.abs(np.log(_values(cases, "labels")[:, None] / KNOWN)).argmin(1))


def accuracy_of(errors: Floats) -> Floats:
    """Return accuracies of logarithms of the error, of any shape."""
    return np.asarray(1 - np.exp(np.minimum(errors, 0)))


def _expected(cases: pd.DataFrame, change: Floats) -> Floats:
    """Return the expected logarithm of the error, at least that of `LEAST_ERROR` and at most that of now, `[cases]`."""
    return np.asarray(np.maximum(_values(cases, "level") + np.minimum(change, 0), np.log(LEAST_ERROR)))


def design_of(cases: pd.DataFrame, methods: NDArray[np.str_]) -> Floats:
    """Return what the change of the logarithm of the error is linear in, `[cases, columns]`, last the methods."""
    slope, orderings = _values(cases, "slope"), _values(cases, "orderings")
    shared = [np.ones(len(cases)), slope, slope / orderings, _log_labels(cases), _many_classes(cases)]
    exponents = np.column_stack([*shared, _values(cases, "method")[:, None] == methods])
    return np.asarray(exponents * np.log(_values(cases, "ratio"))[:, None])


def scale_design_of(cases: pd.DataFrame, methods: NDArray[np.str_]) -> Floats:
    """Return what the logarithm of the size of a forecast's error is linear in, `[cases, columns]`."""
    shared = [
        np.ones(len(cases)),
        np.exp(_values(cases, "level") - _values(cases, "chance")),
        np.log(np.log(_values(cases, "ratio"))),
        _log_labels(cases),
        1 / _values(cases, "orderings"),
        _many_classes(cases),
    ]
    return np.column_stack([*shared, _values(cases, "method")[:, None] == methods])


def _log_labels(cases: pd.DataFrame) -> Floats:
    """Return the logarithm of the number of labels over `MIDDLE`; beyond either end of `KNOWN`, that of the end."""
    return np.asarray(np.log(np.clip(_values(cases, "labels"), KNOWN[0], KNOWN[-1]) / MIDDLE))


def _many_classes(cases: pd.DataFrame) -> Floats:
    """Return the logarithm of half of the number of classes, of `MOST_CLASSES` at most."""
    classes = -np.log(1 - np.exp(_values(cases, "chance")))
    return np.asarray(np.minimum(classes, np.log(MOST_CLASSES)) - np.log(2))

"""Forecasts of accuracy at more labels: an exponent pooled over data sets, with conformal intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.forecast.known_curves import CURVE

# Points from which a slope is estimated, evenly spaced on a log scale from half of the known labels to all of them.
POINTS = 5
# Errors are clipped to at least this one, so that their logarithms exist.
MIN_ERROR = 0.005
# Calibration forecasts known curves from these numbers of labels, at these multiples of them.
KNOWN = (10, 20, 50, 100)
RATIOS = (1.4, 2, 4, 8)
FURTHEST = 8
# A number of labels in the middle of `KNOWN`.
MIDDLE = 30
# Largest number of classes of a known curve.
MOST_CLASSES = 19
# Nominal coverage of the intervals.
LEVELS = (0.8, 0.95)
# Added to the absolute errors of forecasts, so that their logarithms exist.
RESIDUAL_OFFSET = 0.02
# Prior standard deviations of the coefficients of `design_of`; the last is that of the methods' effects.
PRIOR = (1.0, 0.5, 0.5, 0.05, 0.1, 0.1)
# Standard deviation of the residual of a data set in the regression on `design_of`.
NOISE = 0.15
# Prior standard deviations of the coefficients of `scale_design_of`.
SCALE_PRIOR = (3.0, 1.0, 1.0, 1.0, 3.0, 0.2, 0.3)
# Standard deviation of the residual of a data set in the regression on `scale_design_of`.
SCALE_NOISE = 0.5


def log_error(accuracy: Floats) -> Floats:
    """Return the logarithm of the error of accuracies of any shape; the error is clipped to at least `MIN_ERROR`."""
    return np.asarray(np.log(np.maximum(1 - accuracy, MIN_ERROR)))


def observe(
    labels: NDArray[np.int64], accuracies: Floats, known: int, classes: NDArray[np.int64], orderings: int
) -> pd.DataFrame:
    """Return the predictors that are observed in curves up to a number of known labels.

    Args:
        labels: Numbers of labels of the curves, ascending, `[labels]`.
        accuracies: Mean accuracies over orderings, `[curves, labels]`; those after `known` are not read.
        known: Number of known labels, at least the first of `labels`.
        classes: Number of classes, `[curves]`.
        orderings: Number of orderings that were averaged.

    Returns:
        A row for each curve: `labels`, the number of labels; `level`, the logarithm of the error after these labels;
        `slope`, the slope of that logarithm against that of the number of labels, over `POINTS` points; `chance`, the
        logarithm of the error of guessing; `orderings`.
    """
    last = int(np.searchsorted(labels, known, side="right")) - 1
    wanted = labels[last] * 2 ** (-np.arange(POINTS) / (POINTS - 1))
    # For each wanted number of labels, the last evaluation after no more labels.
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
    """Return all cases that known curves allow, for their means over all orderings, over the first two and the first.

    Args:
        curves: The curves, as `read_curves` returns them.
        known: Numbers of known labels.
        ratios: Multiples of these at which to forecast; the nearest number with an evaluation replaces each.

    Returns:
        A row for each case: the columns of `observe`; `data_set`, `source` and `method`, names; `ratio`, the
        multiple of the known labels; `accuracy`, the true one at that multiple.
    """
    labels, parts = curves.columns.to_numpy(), list[pd.DataFrame]()
    by_curve = curves.groupby(level=CURVE, sort=False)
    all_orderings = int(by_curve.size().max())
    for orderings in sorted({1, min(2, all_orderings), all_orderings}):
        means = by_curve.head(orderings).groupby(level=CURVE, sort=False).mean()
        accuracies, of_curves = means.to_numpy(), means.index.to_frame(index=False)
        for at in known:
            observed = observe(labels, accuracies, at, of_curves["classes"].to_numpy(), orderings)
            observed = observed.join(of_curves[["data_set", "source", "method"]])
            for ratio in ratios:
                column = int(np.abs(np.log(labels / (at * ratio))).argmin())
                actual = labels[column] / at
                if abs(actual / ratio - 1) < 0.15:
                    parts.append(observed.assign(ratio=actual, accuracy=accuracies[:, column]).dropna())
    return pd.concat(parts, ignore_index=True)


class Regression:
    """A ridge regression in which every data set has the weight of one observation.

    Coefficients have normal priors with mean 0.

    Args:
        design: `[cases, columns]`.
        values: `[cases]`.
        cases: The cases.
        deviations: Prior standard deviations of the first coefficients, the last one also that of all further ones.
        noise: Standard deviation of the residual of a data set.
    """

    def __init__(
        self, design: Floats, values: Floats, cases: pd.DataFrame, deviations: Sequence[float], noise: float
    ) -> None:
        self.design = design
        _, self.data_sets = np.unique(cases["data_set"], return_inverse=True)
        rows = [self.data_sets == index for index in range(self.data_sets.max() + 1)]
        self.grams = np.stack([design[selected].T @ design[selected] / selected.sum() for selected in rows])
        self.moments = np.stack([design[selected].T @ values[selected] / selected.sum() for selected in rows])
        priors = np.append(deviations, np.full(design.shape[1] - len(deviations), deviations[-1]))
        self.penalty = np.diag((noise / priors) ** 2)

    @property
    def coefficients(self) -> Floats:
        """The posterior means of the coefficients, `[columns]`."""
        return np.asarray(np.linalg.solve(self.grams.sum(0) + self.penalty, self.moments.sum(0)))

    def predict_left_out(self) -> Floats:
        """Return predictions for each case by the coefficients from all other data sets, `[cases]`."""
        grams, moments = (parts.sum(0) - parts for parts in (self.grams, self.moments))
        coefficients = np.linalg.solve(grams + self.penalty, moments[..., None])[..., 0]
        return np.asarray(np.einsum("nc,nc->n", self.design, coefficients[self.data_sets]))


class Forecaster:
    """Forecasts from the curves of other data sets.

    The error is a power law from the last known label on. Its exponent is pooled over data sets by a ridge regression.
    The predictors are the number of known labels, the number of classes, the slope of the curve and the method, whose
    effects are shrunk towards 0. A second regression predicts the absolute error of a forecast. Intervals are
    calibrated to their nominal coverage on forecasts of every data set by all others. They are wider for a method and a
    number of known labels where its errors require it.

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
        factors: Half-width of intervals in units of the predicted absolute error, by level, `[methods, KNOWN]`.
    """

    def __init__(self, cases: pd.DataFrame) -> None:
        self.cases = cases
        self.methods = np.unique(cases["method"].to_numpy(np.str_))

        # The change of the logarithm of the error, and the absolute errors of its left-out predictions, `[cases]`.
        error = log_error(_values(cases, "accuracy"))
        change = error - _values(cases, "level")
        self._change = Regression(design_of(cases, self.methods), change, cases, PRIOR, NOISE)
        left_out = abs(error - _expected(cases, self._change.predict_left_out()))

        # The logarithms of these errors, and the errors in units of the left-out predictions of their size.
        sizes = np.log(left_out + RESIDUAL_OFFSET)
        self._size = Regression(scale_design_of(cases, self.methods), sizes, cases, SCALE_PRIOR, SCALE_NOISE)
        self._scores = left_out / np.exp(self._size.predict_left_out())
        self.factors = {level: self._find_factors(level) for level in LEVELS}

    def forecast(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Return cases with their forecasts; their true accuracies are not read.

        The new columns are `expected`, the accuracy, and the ends of the intervals of all `LEVELS`, as `ends_of` names
        them.
        """
        errors = _expected(cases, design_of(cases, self.methods) @ self._change.coefficients)
        scale = np.exp(scale_design_of(cases, self.methods) @ self._size.coefficients)
        # An unknown method has the index -1, which selects the last row.
        rows = pd.Index(self.methods).get_indexer(cases["method"])
        at = np.interp(np.log(cases["labels"]), np.log(KNOWN), np.arange(len(KNOWN)))
        below, above, share = at.astype(np.int64), np.ceil(at).astype(np.int64), at % 1

        forecasts = cases.assign(expected=accuracy_of(errors))
        for level, factors in self.factors.items():
            of_methods = np.vstack([factors, factors.max(0)])
            half_width = scale * ((1 - share) * of_methods[rows, below] + share * of_methods[rows, above])
            forecasts[ends_of(level)] = accuracy_of(np.column_stack([errors + half_width, errors - half_width]))
        return forecasts

    def _find_factors(self, level: float) -> Floats:
        """Return the half-width of intervals in units of the predicted absolute error, `[methods, KNOWN]`."""
        at, names = _nearest_known(self.cases), _values(self.cases, "method")
        pooled = self._quantile(at >= 0, level)
        groups = [[(names == name) & (at == column) for column in range(len(KNOWN))] for name in self.methods]
        quantiles = [[self._quantile(group, level) if group.any() else pooled for group in row] for row in groups]
        return np.maximum(pooled, quantiles)

    def _quantile(self, selected: Flags, level: float) -> float:
        """Return the quantile of the scores of selected cases, with the same total weight for every data set."""
        weights = data_set_weights(self.cases["data_set"][selected])
        return weighted_quantile(self._scores[selected], weights, level)


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the smallest value such that the values up to it have at least this share of all weights."""
    order = np.argsort(values)
    shares = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(shares, level)), len(values) - 1)])


def ends_of(level: float) -> list[str]:
    """Return the names of the columns of the lower and the upper ends of intervals of this nominal coverage."""
    return [f"low_{level}", f"high_{level}"]


def data_set_weights(data_sets: pd.Series[str]) -> Floats:
    """Return weights that sum to 1 within every data set, `[cases]`."""
    return np.asarray(1 / data_sets.groupby(data_sets).transform("size"))


def _values(cases: pd.DataFrame, column: str) -> NDArray[Any]:
    return np.asarray(cases[column])


def _nearest_known(cases: pd.DataFrame) -> Indices:
    """Return the index in `KNOWN` of the number of labels that is nearest on a log scale, `[cases]`."""
    return np.asarray(np.abs(np.log(_values(cases, "labels")[:, None] / KNOWN)).argmin(1))


def accuracy_of(log_errors: Floats) -> Floats:
    """Return the accuracies from logarithms of the error, of any shape."""
    return np.asarray(1 - np.exp(np.minimum(log_errors, 0)))


def _expected(cases: pd.DataFrame, change: Floats) -> Floats:
    """Return the expected logarithm of the error, clipped to the range from `MIN_ERROR` to `level`, `[cases]`."""
    return np.asarray(np.maximum(_values(cases, "level") + np.minimum(change, 0), np.log(MIN_ERROR)))


def design_of(cases: pd.DataFrame, methods: NDArray[np.str_]) -> Floats:
    """Return the predictors of the change of the logarithm of the error, `[cases, columns]`, the methods last."""
    slope, orderings = _values(cases, "slope"), _values(cases, "orderings")
    shared = [np.ones(len(cases)), slope, slope / orderings, _log_labels(cases), _log_classes(cases)]
    predictors = np.column_stack([*shared, _values(cases, "method")[:, None] == methods])
    return np.asarray(predictors * np.log(_values(cases, "ratio"))[:, None])


def scale_design_of(cases: pd.DataFrame, methods: NDArray[np.str_]) -> Floats:
    """Return the predictors of the logarithm of the absolute error of a forecast, `[cases, columns]`."""
    shared = [
        np.ones(len(cases)),
        np.exp(_values(cases, "level") - _values(cases, "chance")),
        np.log(np.log(_values(cases, "ratio"))),
        _log_labels(cases),
        1 / _values(cases, "orderings"),
        _log_classes(cases),
    ]
    return np.column_stack([*shared, _values(cases, "method")[:, None] == methods])


def _log_labels(cases: pd.DataFrame) -> Floats:
    """Return log(labels / `MIDDLE`), with the number of labels clipped to the range of `KNOWN`."""
    return np.asarray(np.log(np.clip(_values(cases, "labels"), KNOWN[0], KNOWN[-1]) / MIDDLE))


def _log_classes(cases: pd.DataFrame) -> Floats:
    """Return log(classes / 2), with the number of classes clipped to at most `MOST_CLASSES`."""
    classes = -np.log(1 - np.exp(_values(cases, "chance")))
    return np.asarray(np.minimum(classes, np.log(MOST_CLASSES)) - np.log(2))

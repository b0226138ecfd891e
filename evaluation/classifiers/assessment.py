"""Which method suits labelled samples, and how accurate its classifier will be, with these labels and with more."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from headstart.evaluation.classifiers.left_out import (
    Labelled,
    LeftOut,
    curve_sizes,
    find_candidates,
    learning_curve,
    prepare,
)
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.few_labels.calibration import cross_entropies, fit_temperature, probabilities, sharpen
from headstart.metrics.few_labels.expected_accuracy import LEVEL as EXPECTED_LEVEL
from headstart.metrics.few_labels.expected_accuracy import (
    ExpectedAccuracy,
    choose_method,
    expected_accuracy,
    remaining_error,
)
from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import Forecaster, accuracy_of

# Left-out predictions of each method in all splits together, and the most splits.
PREDICTIONS, MOST_SPLITS = 500, 20
# Coverage of a forecast's intervals.
LEVEL = 0.8
# The last points of a curve rise if the accuracy has grown by more than so many of its standard errors since a quarter
# of the labels. Without a quarter, the first point is taken.
STANDARD_ERRORS, QUARTER = 1.0, 4
# How wide a normal variable's interval of this coverage is, as a share of that of the expected accuracy.
SHARE = float(ndtri((1 + LEVEL) / 2) / ndtri((1 + EXPECTED_LEVEL) / 2))


class Predictions:
    """Left-out predictions of one method, of all samples in each split in turn.

    Args:
        logits: `[predictions, classes]`.
        labels: `[predictions]`.
        splits: Number of splits.

    Attributes:
        temperature: Temperature that calibrates their probabilities.
        predicted: Predicted classes, `[predictions]`.
    """

    def __init__(self, logits: Floats, labels: Indices, splits: int) -> None:
        self.logits, self.labels, self.splits = logits.astype(np.float64), labels, splits
        self.temperature = fit_temperature(self.logits, labels, splits)
        self.predicted = self.logits.argmax(1)

    def by_sample(self) -> tuple[Floats, Floats]:
        """Return the share of each sample's predictions that is right, and their mean cross-entropy, `[samples]`."""
        right = (self.predicted == self.labels).astype(np.float64)
        losses = cross_entropies(self.logits, self.labels, self.temperature)
        return right.reshape(self.splits, -1).mean(0), losses.reshape(self.splits, -1).mean(0)

    def probabilities(self) -> Floats:
        """Return calibrated probabilities, `[predictions, classes]`."""
        return probabilities(self.logits, self.temperature)

    def confusion(self) -> Floats:
        """Return the share of a class, by rows, that is predicted as each class; zeros for a class without any."""
        counts = np.zeros((self.logits.shape[1],) * 2)
        np.add.at(counts, (self.labels, self.predicted), 1.0)
        shares: Floats = counts / counts.sum(1, keepdims=True).clip(min=1)
        return shares


@dataclass(frozen=True)
class Assessment:
    """All methods on all backbones, scored on samples that they were not trained on.

    Attributes:
        methods: Index of the backbone, and the method, of each trial.
        predictions: Their predictions.
        correct: Share of the predictions of each scored sample that are right, `[trials, scored]`.
        scored: Whether each sample is scored, `[samples]`; the only one of a class is not.
        folds: Number of folds.
        splits: Number of splits into folds.
        expected: The choice, and its expected accuracy.
        sizes: Numbers of samples at which the learning curve of the chosen method has points.
        curve: Its accuracies there, `[orderings]` each.
    """

    methods: Sequence[tuple[int, LeftOut]]
    predictions: Sequence[Predictions]
    correct: Floats
    scored: Flags
    folds: int
    splits: int
    expected: ExpectedAccuracy
    sizes: Sequence[int] = ()
    curve: Sequence[Floats] = ()

    @property
    def best(self) -> tuple[int, LeftOut]:
        """Index of the chosen backbone, and the chosen method."""
        return self.methods[self.expected.chosen]

    @property
    def chosen(self) -> Predictions:
        """Predictions of the chosen method."""
        return self.predictions[self.expected.chosen]

    @property
    def temperature(self) -> float:
        """Temperature of the chosen method after it has learnt all labels."""
        return sharpen(self.chosen.logits, self.chosen.temperature, self.expected.gain)

    def probabilities(self) -> Floats:
        """Return the chosen method's probabilities of left-out samples, the mean over splits, `[samples, classes]`.

        They are NaN for a sample that is never left out.
        """
        values = self.chosen.probabilities()
        return self._spread(values.reshape(self.splits, -1, values.shape[1]).mean(0))

    def otherwise(self) -> Floats:
        """Return the share of the predictions of all methods that say otherwise than the label, `[samples]`."""
        return self._spread(1 - self.correct.mean(0))

    def _spread(self, values: Floats) -> Floats:
        """Return values of scored samples among all samples, the others NaN."""
        result = np.full((len(self.scored), *values.shape[1:]), np.nan)
        result[self.scored] = values
        return result


def try_left_out(backbones: Sequence[Labelled], seed: int) -> Assessment:
    """Score all methods on all backbones by folds, and choose one; there is no learning curve yet.

    Args:
        backbones: The same samples by one or several backbones.
        seed: Seed of splits and bootstraps.
    """
    labels = backbones[0].labels.numpy()
    folds = count_folds(labels)
    splits = int(np.clip(PREDICTIONS // len(labels), 1, MOST_SPLITS))
    assigned = stratified_folds(labels, folds, splits, seed)
    scored = assigned[0] != KEPT
    every = np.tile(labels[scored], splits)

    methods = [(i, prepare(kind, samples)) for i, samples in enumerate(backbones) for kind in find_candidates(samples)]
    predictions = []
    for _, method in methods:
        logits = method.predict_folds(assigned).numpy()[:, scored]
        predictions.append(Predictions(logits.reshape(len(every), -1), every, splits))
    correct, losses = (np.stack(parts) for parts in zip(*(its.by_sample() for its in predictions), strict=True))

    # The growth of accuracy, from less than half of the folds to all but one; of two folds it is not known.
    best, fewer = choose_method(correct, losses), max(1, (folds - 1) // 2)
    accuracies = methods[best][1].accuracy(assigned, folds - fewer), float(correct[best].mean())
    error_left = remaining_error(*accuracies, (fewer / folds, (folds - 1) / folds), int(scored.sum()))
    expected = expected_accuracy(correct, losses, (folds - 1) / folds, error_left, seed)
    return Assessment(methods, predictions, correct, scored, folds, splits, expected)


def assess(backbones: Sequence[Labelled], orderings: int, seed: int) -> Assessment:
    """Try all methods on all backbones, without setting a sample aside.

    Args:
        backbones: The same samples by one or several backbones.
        orderings: Orderings of the learning curve.
        seed: Seed of splits, orderings and bootstraps.
    """
    assessment = try_left_out(backbones, seed)
    labels = backbones[0].labels.numpy()
    sizes = curve_sizes(len(labels), backbones[0].classes)
    orders = proportional_orderings(labels, orderings, seed)
    return replace(assessment, sizes=sizes, curve=learning_curve(assessment.best[1], orders, sizes))


def rises(sizes: Sequence[int], curve: Sequence[Floats], labels: int) -> bool:
    """Return whether the last points of a curve rise, beyond what the choice of the photos explains.

    Args:
        sizes: Labels at each point of the curve.
        curve: Accuracies at each point, `[orderings]` each, of which all points have the first ones.
        labels: Number of all labels.
    """
    orderings = min(map(len, curve), default=1)
    means = [float(values[:orderings].mean()) for values in curve]
    if not means:
        return False
    earlier = max((index for index, size in enumerate(sizes) if QUARTER * size <= sizes[-1]), default=0)
    error = math.sqrt(means[-1] * (1 - means[-1]) / labels)
    return means[-1] - means[earlier] > STANDARD_ERRORS * error


def forecast_rows(
    sizes: Sequence[int],
    curve: Sequence[Floats],
    expected: ExpectedAccuracy,
    labels: int,
    classes: int,
    method: str,
    forecaster: Forecaster | None = None,
) -> list[dict[str, Any]]:
    """Return the forecast accuracies at 2, 4 and 8 times the labels.

    The curve ends with the expected accuracy of all labels. The uncertainty of this accuracy counts as well. The
    forecast's reach, in the logarithm of the error, is the root of the sum of two squares. One is of its own reach. The
    other is of its shift if the curve ends at the lower or upper end of the expected accuracy's interval.

    Args:
        sizes: Labels at each point of the curve.
        curve: Accuracies at each point, `[orderings]` each, of which all points have the first ones.
        expected: The expected accuracy.
        labels: Number of all labels.
        classes: Number of classes.
        method: Name of the method.
        forecaster: Forecaster; by default the one calibrated on the curves of the suite.

    Returns:
        Rows with `labels`, `estimate`, and `interval` with its `level`; none if the curve's last points do not rise.
    """
    if not rises(sizes, curve, labels):
        return []
    orderings = min(map(len, curve), default=1)
    before = [values[:orderings] for values in curve]

    def continued(accuracy: float) -> CurveForecast:
        accuracies = np.column_stack([*before, np.full(orderings, accuracy)])
        return forecast_curve(np.array([*sizes, labels]), accuracies, classes, method, forecaster=forecaster)

    middle = continued(expected.estimate)
    others = [continued(end) for end in (expected.low, expected.high)]
    rows = []
    for times in TIMES:
        estimate, intervals = middle.at(times)
        error = np.log(1 - estimate)
        reach = np.log(1 - np.array(intervals[LEVEL])) - error
        moved = np.log(1 - np.array([curve.at(times)[0] for curve in others])) - error
        ends = accuracy_of(error + np.hypot(reach, SHARE * moved) * [1, -1])
        rows.append({"labels": times * labels, "estimate": estimate, "interval": ends.tolist(), "level": LEVEL})
    return rows

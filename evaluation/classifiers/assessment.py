"""Which method suits labelled samples, and how accurate its classifier will be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.evaluation.classifiers.candidates import Labelled, find_candidates
from headstart.evaluation.classifiers.left_out import LeftOut, prepare
from headstart.evaluation.classifiers.prequential import curve_sizes, learning_curve
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.few_labels.calibration import (
    calibration_error,
    cross_entropies,
    fit_temperature,
    probabilities,
)
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy, expected_accuracy, tied_with
from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds
from headstart.modules.methods.catalogue import METHODS

# Left-out predictions of each method in all splits together, and the most splits.
PREDICTIONS, MOST_SPLITS = 500, 20
# A label looks wrong if this share of the predictions, of all methods in all splits, says otherwise.
NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Trial:
    """A method on one backbone, as it was tried.

    Attributes:
        backbone: Index of the backbone.
        kind: The method's class.
    """

    backbone: int
    kind: str

    @property
    def method(self) -> str:
        """The method's name."""
        return METHODS[self.kind].name


@dataclass(frozen=True)
class Assessment:
    """Results of the methods that were tried on labelled samples.

    Attributes:
        trials: The methods, the best on other data first.
        accuracies: Share of the left-out predictions of each that are right, `[trials]`.
        tied: Whether it is not significantly worse than the chosen one, `[trials]`.
        expected: The accuracy that is expected of the chosen one.
        folds: Number of folds.
        splits: Number of splits into folds.
        sizes: Numbers of samples at which the learning curve of the chosen one has points.
        curve: Its accuracies there, `[orderings]` each.
        temperature: Temperature of the chosen one's probabilities.
        calibration_error: Expected calibration error of them.
        confidence: Mean probability of the predicted class.
        probabilities: Those of left-out samples, the mean over splits, `[samples, classes]`; NaN where a sample is
            never left out.
        otherwise: Share of the predictions of all methods that say otherwise than the label, `[samples]`.
        confusion: Share of each class, by rows, that is predicted as each, `[classes, classes]`.
    """

    trials: Sequence[Trial]
    accuracies: Floats
    tied: Sequence[bool]
    expected: ExpectedAccuracy
    folds: int
    splits: int
    sizes: Sequence[int]
    curve: Sequence[Floats]
    temperature: float
    calibration_error: float
    confidence: float
    probabilities: Floats
    otherwise: Floats
    confusion: Floats

    @property
    def best(self) -> Trial:
        """The chosen method."""
        return self.trials[self.expected.chosen]


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
        """Return the share of each class, by rows, that is predicted as each; zeros where it has none."""
        counts = np.zeros((self.logits.shape[1],) * 2)
        np.add.at(counts, (self.labels, self.predicted), 1.0)
        shares: Floats = counts / counts.sum(1, keepdims=True).clip(min=1)
        return shares


@dataclass(frozen=True)
class LeftOutTrials:
    """All methods on all backbones, scored on samples that they were not trained on.

    Attributes:
        prepared: Index of the backbone and method of each trial.
        predictions: Their predictions.
        correct: Share of the predictions of each scored sample that are right, `[trials, scored]`.
        scored: Whether each sample is scored, `[samples]`; the only one of a class is not.
        folds: Number of folds.
        splits: Number of splits into folds.
        expected: The choice, and its expected accuracy.
    """

    prepared: Sequence[tuple[int, LeftOut]]
    predictions: Sequence[Predictions]
    correct: Floats
    scored: Flags
    folds: int
    splits: int
    expected: ExpectedAccuracy


def try_left_out(backbones: Sequence[Labelled], seed: int) -> LeftOutTrials:
    """Score all methods on all backbones by folds, and choose one.

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

    prepared = [(i, prepare(kind, samples)) for i, samples in enumerate(backbones) for kind in find_candidates(samples)]
    predictions = []
    for _, method in prepared:
        logits = method.predict_folds(assigned).numpy()[:, scored]
        predictions.append(Predictions(logits.reshape(len(every), -1), every, splits))
    correct, losses = (np.stack(parts) for parts in zip(*(each.by_sample() for each in predictions), strict=True))
    expected = expected_accuracy(correct, losses, (folds - 1) / folds, seed)
    return LeftOutTrials(prepared, predictions, correct, scored, folds, splits, expected)


def assess(backbones: Sequence[Labelled], orderings: int, seed: int) -> Assessment:
    """Try all methods on all backbones, without setting a sample aside.

    Args:
        backbones: The same samples by one or several backbones.
        orderings: Orderings of the learning curve.
        seed: Seed of splits, orderings and bootstraps.
    """
    tried = try_left_out(backbones, seed)
    labels, classes = backbones[0].labels.numpy(), backbones[0].classes
    _, best = tried.prepared[tried.expected.chosen]
    sizes = curve_sizes(len(labels), classes)
    curve = learning_curve(best, proportional_orderings(labels, orderings, seed), sizes)

    chosen = tried.predictions[tried.expected.chosen]
    found = chosen.probabilities()
    return Assessment(
        [Trial(index, each.name) for index, each in tried.prepared],
        tried.correct.mean(1),
        tied_with(tried.correct, tried.expected.chosen),
        tried.expected,
        tried.folds,
        tried.splits,
        sizes,
        curve,
        chosen.temperature,
        calibration_error(found.max(1), chosen.predicted == chosen.labels),
        float(found.max(1).mean()),
        _spread(found.reshape(tried.splits, -1, classes).mean(0), tried.scored),
        _spread(1 - tried.correct.mean(0), tried.scored),
        chosen.confusion(),
    )


def _spread(values: Floats, scored: Flags) -> Floats:
    """Return values of scored samples among all samples, the others NaN."""
    result = np.full((len(scored), *values.shape[1:]), np.nan)
    result[scored] = values
    return result

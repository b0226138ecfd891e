"""Which method suits labelled samples, and how accurate its classifier will be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headstart.evaluation.classifiers.candidates import Labelled, find_candidates
from headstart.evaluation.classifiers.left_out import LeftOut, prepare
from headstart.evaluation.classifiers.prequential import curve_sizes, learning_curve
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.few_labels.calibration import cross_entropies, fit_temperature, probabilities, sharpen
from headstart.metrics.few_labels.expected_accuracy import (
    ExpectedAccuracy,
    choose_method,
    expected_accuracy,
    remaining_error,
)
from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds

# Left-out predictions of each method in all splits together, and the most splits.
PREDICTIONS, MOST_SPLITS = 500, 20


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
    correct, losses = (np.stack(parts) for parts in zip(*(each.by_sample() for each in predictions), strict=True))

    # The growth of accuracy, from half of the folds to all but one.
    chosen, fewer = choose_method(correct, losses), max(1, (folds - 1) // 2)
    accuracies = methods[chosen][1].accuracy(assigned, folds - fewer), float(correct[chosen].mean())
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

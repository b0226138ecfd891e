"""Which method suits labelled samples, and how accurate its classifier will be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.classifiers.candidates import Labelled, find_candidates
from headstart.classifiers.left_out import LeftOut, prepare
from headstart.classifiers.prequential import curve_sizes, learning_curve
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.calibration import calibration_error, fit_temperature, probabilities
from headstart.metrics.few_labels.expected_accuracy import ExpectedAccuracy, choose, expected_accuracy, tied_with
from headstart.metrics.few_labels.folds import KEPT, count_folds, proportional_orderings, stratified_folds
from headstart.modules.methods.catalogue import METHODS

# Left-out predictions of each method in all splits together, and the most splits.
PREDICTIONS, MOST_SPLITS = 1_000, 20
# A label looks wrong if this share of the predictions, of all methods in all splits, says otherwise.
NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Trial:
    """A method on one backbone, as it was tried.

    Attributes:
        backbone: Index of the backbone.
        kind: The method's class.
        curve: Accuracies at each size of the learning curve, `[orderings]` each.
    """

    backbone: int
    kind: str
    curve: Sequence[Floats]

    @property
    def method(self) -> str:
        """The method's name."""
        return METHODS[self.kind].name


@dataclass(frozen=True)
class Assessment:
    """What labelled samples say about the methods that were tried on them.

    Attributes:
        trials: The methods, the best on other data first.
        accuracies: Share of the left-out predictions of each that are right, `[trials]`.
        chosen: Index of the chosen one.
        tied: Whether the samples do not tell it apart from the chosen one, `[trials]`.
        expected: The accuracy that is expected of the chosen one.
        folds: Number of folds.
        splits: Number of splits into folds.
        sizes: Numbers of samples at which the learning curves have points.
        temperature: Temperature of the chosen one's probabilities.
        calibration_error: Expected calibration error of them.
        probabilities: Those of left-out samples, the mean over splits, `[samples, classes]`; NaN where a sample is
            never left out.
        otherwise: Share of the predictions of all methods that say otherwise than the label, `[samples]`.
        confusion: Share of each class, by rows, that is predicted as each, `[classes, classes]`.
    """

    trials: Sequence[Trial]
    accuracies: Floats
    chosen: int
    tied: Sequence[bool]
    expected: ExpectedAccuracy
    folds: int
    splits: int
    sizes: Sequence[int]
    temperature: float
    calibration_error: float
    probabilities: Floats
    otherwise: Floats
    confusion: Floats

    @property
    def best(self) -> Trial:
        """The chosen method."""
        return self.trials[self.chosen]


def assess(backbones: Sequence[Labelled], orderings: int, seed: int) -> Assessment:
    """Try all methods on all backbones, without setting a sample aside.

    Args:
        backbones: The same samples by one or several backbones.
        orderings: Orderings of the learning curves.
        seed: Seed of splits, orderings and bootstraps.
    """
    labels, classes = backbones[0].labels.numpy(), backbones[0].classes
    folds = count_folds(labels)
    splits = int(np.clip(PREDICTIONS // len(labels), 1, MOST_SPLITS))
    assigned = stratified_folds(labels, folds, splits, seed)
    orders = proportional_orderings(labels, orderings, seed)
    sizes = curve_sizes(len(labels), classes)

    prepared: list[tuple[int, LeftOut]] = [
        (index, prepare(kind, samples)) for index, samples in enumerate(backbones) for kind in find_candidates(samples)
    ]
    scores = [each.predict_folds(assigned) for _, each in prepared]
    trials = [Trial(index, each.name, learning_curve(each, orders, sizes)) for index, each in prepared]

    scored = assigned[0] != KEPT
    right = np.stack([each.argmax(-1).numpy() for each in scores])[:, :, scored] == labels[scored]
    correct = right.mean(1)
    chosen = int(choose(correct.mean(1)))
    logits = scores[chosen].numpy()[:, scored].astype(np.float64)
    temperature, error, found = _calibrate(logits, labels[scored])

    return Assessment(
        trials,
        correct.mean(1),
        chosen,
        tied_with(correct, chosen),
        expected_accuracy(correct, (folds - 1) / folds, seed=seed),
        folds,
        splits,
        sizes,
        temperature,
        error,
        _spread(found, scored),
        _spread(1 - right.mean((0, 1)), scored),
        _confuse(logits.argmax(-1), labels[scored], classes),
    )


def _calibrate(logits: Floats, labels: Indices) -> tuple[float, float, Floats]:
    """Return the temperature of logits `[splits, samples, classes]`, the calibration error, and mean probabilities."""
    every = np.tile(labels, len(logits))
    flat = logits.reshape(-1, logits.shape[-1])
    temperature = fit_temperature(logits.reshape(flat.shape), every, repeats=len(logits))
    found = probabilities(flat, temperature)
    error = calibration_error(found.max(1), found.argmax(1) == every)
    return temperature, error, found.reshape(logits.shape).mean(0)


def _spread(values: Floats, scored: np.ndarray) -> Floats:
    """Return values of scored samples among all samples, the others NaN."""
    result = np.full((len(scored), *values.shape[1:]), np.nan)
    result[scored] = values
    return result


def _confuse(predicted: Indices, labels: Indices, classes: int) -> Floats:
    """Return the share of each class that is predicted as each; rows of classes without a scored sample are zero."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (np.broadcast_to(labels, predicted.shape), predicted), 1.0)
    shares: Floats = counts / counts.sum(1, keepdims=True).clip(min=1)
    return shares

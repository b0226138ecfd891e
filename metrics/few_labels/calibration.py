"""Probabilities from the scores of left-out predictions."""

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, softmax

from headstart.metrics.arrays import Floats, Indices

# Logarithms of the scales of scores that are tried, around that of the scores themselves.
SCALES = (-12.0, 12.0)
BINS = 10
# Logarithm of the largest factor by which scores are sharpened.
SHARPEST = 5.0
# The most predictions for one temperature, evenly spread over all.
ENOUGH = 20_000


def fit_temperature(logits: Floats, labels: Indices, repeats: int = 1) -> float:
    """Return the temperature that turns scores into probabilities: scores are divided by it before a softmax.

    The temperature minimises the cross-entropy of predictions for samples that were left out of training (Chuan Guo,
    Geoff Pleiss, Yu Sun, Kilian Q. Weinberger, "On Calibration of Modern Neural Networks", ICML, 2017, section 4.2).
    All of few samples may be predicted correctly; the minimum would then be at a temperature of 0. So n samples count
    as having half an error at least, which is the mean error after n successes with Jeffreys' prior (Harold Jeffreys,
    Theory of Probability, 1961, section 3.1): the share that is missing to `0.5 / (n + 1)` is spread over the other
    classes.

    Args:
        logits: `[samples, classes]`.
        labels: `[samples]`.
        repeats: How often each sample is among them.

    Returns:
        A positive number.
    """
    errors = float((logits.argmax(1) != labels).mean())
    missing = max(0.0, 0.5 / (len(labels) / repeats + 1) - errors)
    step = max(1, len(labels) // ENOUGH)
    logits, labels = logits[::step], labels[::step]
    samples, classes = logits.shape
    spread = float(np.mean(np.sort(logits, 1)[:, -1] - logits.mean(1))) or 1.0

    targets = np.full((samples, classes), missing / max(classes - 1, 1))
    targets[np.arange(samples), labels] = 1 - missing

    def loss(logarithm: float) -> float:
        return -float((targets * log_softmax(logits * (np.exp(logarithm) / spread), axis=1)).sum(1).mean())

    best = minimize_scalar(loss, bounds=SCALES, method="bounded", options={"xatol": 1e-4})
    return spread / float(np.exp(best.x))


def sharpen(logits: Floats, temperature: float, gain: float) -> float:
    """Return the temperature at which the mean probability of the predicted classes is larger by a gain.

    Left-out predictions were learnt from a part of the labels. A classifier of all labels is more often right, and its
    probabilities have to be as much larger.

    Args:
        logits: `[samples, classes]`.
        temperature: The temperature that calibrates them.
        gain: By how much more often the classifier of all labels is right, as a share of its predictions.
    """
    step = max(1, len(logits) // ENOUGH)
    target = probabilities(logits[::step], temperature).max(1).mean() + gain

    def missing(logarithm: float) -> float:
        return float(target - probabilities(logits[::step], temperature * np.exp(logarithm)).max(1).mean())

    # No gain where nearly all probabilities are 1 already.
    if gain <= 0 or missing(-SHARPEST) >= 0:
        return temperature
    return temperature * float(np.exp(brentq(missing, -SHARPEST, 0)))


def probabilities(logits: Floats, temperature: float) -> Floats:
    """Return probabilities of classes, `[samples, classes]`, from logits `[samples, classes]`."""
    result: Floats = softmax(logits / temperature, axis=1)
    return result


def cross_entropies(logits: Floats, labels: Indices, temperature: float) -> Floats:
    """Return the cross-entropy of each prediction, `[samples]`; arguments as for `fit_temperature`."""
    result: Floats = -log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels]
    return result


def calibration_error(confidences: Floats, correct: Floats) -> float:
    """Return the expected calibration error: the average gap between confidence and accuracy.

    Source: Mahdi Pakdaman Naeini, Gregory F. Cooper, Milos Hauskrecht, "Obtaining Well Calibrated Probabilities Using
    Bayesian Binning", AAAI, 2015. All bins have equal numbers of predictions, ten or more each.

    Args:
        confidences: Probability of the predicted class, `[predictions]`.
        correct: Whether it is right, `[predictions]`.
    """
    order = np.argsort(confidences, kind="stable")
    bins = int(np.clip(len(order) // 10, 1, BINS))
    parts = np.array_split(order, bins)
    gaps = [abs(confidences[part].mean() - correct[part].mean()) * len(part) for part in parts]
    return float(sum(gaps) / len(order))

"""Probabilities from the scores of left-out predictions."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from headstart.metrics.arrays import Floats, Indices

# Logarithms of the scales of scores that are tried, around that of the scores themselves.
SCALES = (-12.0, 12.0)
BINS = 10
# One temperature needs no more predictions than so many, evenly spread over all.
ENOUGH = 20_000


def fit_temperature(logits: Floats, labels: Indices, repeats: int = 1) -> float:
    """Return the temperature that turns scores into probabilities: scores are divided by it before a softmax.

    The temperature minimises the cross-entropy of predictions for samples that were left out of training (Chuan Guo,
    Geoff Pleiss, Yu Sun, Kilian Q. Weinberger, "On Calibration of Modern Neural Networks", ICML, 2017, section 4.2).
    All of few samples may be predicted correctly; the minimum would then be at a temperature of 0. The targets are
    therefore smoothed: for n_c samples of a class and C classes, `(n_c + 1) / (n_c + C)` for the class itself and `1 /
    (n_c + C)` for each other one (John Platt, "Probabilistic Outputs for Support Vector Machines", Advances in Large
    Margin Classifiers, 1999, equation 10).

    Args:
        logits: `[samples, classes]`.
        labels: `[samples]`.
        repeats: How often each sample is among them.

    Returns:
        A positive number.
    """
    sizes = np.bincount(labels, minlength=logits.shape[1])[labels] / repeats
    step = max(1, len(labels) // ENOUGH)
    logits, labels, sizes = logits[::step], labels[::step], sizes[::step]
    samples, classes = logits.shape
    spread = float(np.mean(np.sort(logits, 1)[:, -1] - logits.mean(1))) or 1.0
    targets = np.repeat(1 / (sizes + classes), classes).reshape(samples, classes)
    targets[np.arange(samples), labels] += sizes / (sizes + classes)

    def loss(logarithm: float) -> float:
        return -float((targets * log_softmax(logits * (np.exp(logarithm) / spread), axis=1)).sum(1).mean())

    best = minimize_scalar(loss, bounds=SCALES, method="bounded", options={"xatol": 1e-4})
    return spread / float(np.exp(best.x))


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

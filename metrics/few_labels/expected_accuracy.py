"""The accuracy that is expected of a classifier which was chosen among several, from left-out predictions alone."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, expit, logit, stdtrit

from headstart.metrics.arrays import Floats, Indices

BOOTSTRAPS = 1_000
LEVEL = 0.95
# Correct and wrong predictions that a uniform prior of an accuracy is worth.
PRIOR = 1.0
# Weight of the cross-entropy beside the accuracy, so small that it decides between equal accuracies alone.
TIE_BREAK = 1e-3
# The power of the number of labels by which errors fall, pooled over other targets, and the samples that it weighs as.
EXPONENT, POOLED = 0.25, 100


@dataclass(frozen=True)
class ExpectedAccuracy:
    """The expected accuracy of the chosen method, fitted to all labels.

    Attributes:
        chosen: Index of the chosen method.
        estimate: The accuracy.
        low: Lower end of its interval.
        high: Upper end.
        uncorrected: The share of left-out predictions of the chosen method that are right.
        gain: By how much this share would be larger after all samples were learnt.
    """

    chosen: int
    estimate: float
    low: float
    high: float
    uncorrected: float
    gain: float


def merits(correct: Floats, losses: Floats) -> Floats:
    """Return what methods are chosen by, the mean over samples: accuracy, and among equal ones the lower cross-entropy.

    With few labels many methods are right on the same number of samples. The cross-entropy of their calibrated
    probabilities separates more of them than the order of the methods on other data sets does.

    Args:
        correct: Share of the left-out predictions of each sample that are right, `[methods, samples]`.
        losses: Their mean cross-entropy, after calibration, likewise.
    """
    return correct - TIE_BREAK * losses


def choose(merit: Floats, counts: Floats) -> Indices:
    """Return the method that is chosen in each bootstrap sample, `[bootstraps]`: the first, unless another is better.

    Each method scores the amount by which its merit exceeds that of the first, less one standard error of this amount
    over samples. The highest score wins; that of the first method is 0. This is the rule of Leo Breiman, Jerome
    Friedman, Richard Olshen, Charles Stone, "Classification and Regression Trees", 1984, section 3.4.3, with the first
    method in place of the simplest.

    Args:
        merit: As `merits` returns it, `[methods, samples]`.
        counts: How often each sample is in each bootstrap sample, `[bootstraps, samples]`.
    """
    drawn = counts.sum(1, keepdims=True)
    differences = merit - merit[0]
    means = counts @ differences.T / drawn
    variances = (counts @ (differences**2).T / drawn - means**2).clip(min=0)
    best: Indices = (means - (variances / (drawn - 1)) ** 0.5).argmax(1)
    return best


def bootstrap_corrected(correct: Floats, merit: Floats, seed: int = 0) -> float:
    """Return the accuracy of the choice among methods, without the optimism of having chosen on the same samples.

    On every bootstrap sample, the best method is chosen, and scored on the samples that are not in it. The estimate is
    the mean score. Source: Ioannis Tsamardinos, Elissavet Greasidou, Giorgos Borboudakis, "Bootstrapping the
    out-of-sample predictions for efficient and accurate cross-validation", Machine Learning, 2018, algorithm 3
    (BBC-CV).

    Args:
        correct: Share of the left-out predictions of each sample that are right, `[methods, samples]`.
        merit: As `merits` returns it.
        seed: Seed of the bootstrap.
    """
    samples = correct.shape[1]
    if len(correct) == 1 or samples < 2:
        return float(correct.mean())
    generator = np.random.default_rng((seed, 2))
    drawn = generator.multinomial(samples, np.full(samples, 1 / samples), size=BOOTSTRAPS)
    drawn = drawn[(drawn == 0).any(1)]

    methods = choose(merit, drawn)
    left_out = (drawn == 0).astype(np.float64)
    right = (left_out @ correct.T)[np.arange(len(drawn)), methods]
    return float((right / left_out.sum(1)).mean())


def choose_method(correct: Floats, losses: Floats) -> int:
    """Return the index of the method to choose; arguments as for `expected_accuracy`."""
    return int(choose(merits(correct, losses), np.ones((1, correct.shape[1])))[0])


def remaining_error(fewer: float, more: float, shares: tuple[float, float], samples: int) -> float:
    """Return the factor by which the error of a method falls from a share of the samples to all of them.

    The log-odds of a right prediction are taken as linear in the logarithm of the number of samples that were learnt.
    Their slope is the mean of the one between two shares, with the number of samples as its weight, and of errors that
    fall as `n^-0.25`, with the weight of 100 samples. With few samples the measured slope is noise; with many classes
    of few samples it is several times the other one.

    Args:
        fewer: Accuracy after the smaller share was learnt.
        more: Accuracy after the larger one.
        shares: The two shares of the samples, which may be equal.
        samples: Number of samples.

    Returns:
        A factor from 0 to 1.
    """
    # Half a prediction more of both kinds keeps the log-odds finite.
    fewer, more = ((accuracy * samples + 0.5) / (samples + 1) for accuracy in (fewer, more))
    # The slope at which the pooled part alone is exactly that power.
    slope = (logit(1 - (1 - more) * shares[1] ** EXPONENT) - logit(more)) / -np.log(shares[1])
    if shares[0] < shares[1]:
        measured = (logit(more) - logit(fewer)) / np.log(shares[1] / shares[0])
        slope = (samples * measured + POOLED * slope) / (samples + POOLED)
    error = expit(-logit(more) + max(slope, 0.0) * np.log(shares[1]))
    return float(error / (1 - more))


def expected_accuracy(
    correct: Floats, losses: Floats, learnt_share: float, error_left: float = 1.0, seed: int = 0
) -> ExpectedAccuracy:
    """Return the method to choose, and its expected accuracy after it has learnt all samples.

    The estimate is bootstrap-corrected for the choice. Each prediction was learnt from a share of the samples alone.
    The error is therefore lowered to that of all samples. The interval is that of the posterior of a share under a
    uniform prior (Thomas Bayes, "An Essay towards solving a Problem in the Doctrine of Chances", Philosophical
    Transactions, 1763). It counts as many predictions as samples were learnt, because the variance of cross-validation
    is that of test sets, enlarged by the overlap of their training sets (Claude Nadeau, Yoshua Bengio, "Inference for
    the Generalization Error", Machine Learning, 2003).

    Args:
        correct: Share of the left-out predictions of each sample that are right, `[methods, samples]`, the method that
            is best on other data first.
        losses: Their mean cross-entropy, after calibration, likewise.
        learnt_share: Share of the samples that each prediction was learnt from.
        error_left: The error of the chosen method after all samples, over that after this share.
        seed: Seed of the bootstrap.
    """
    method = choose_method(correct, losses)
    uncorrected = float(correct[method].mean())
    estimate = 1 - (1 - bootstrap_corrected(correct, merits(correct, losses), seed)) * error_left
    effective = correct.shape[1] * learnt_share
    right, wrong = effective * estimate + PRIOR, effective * (1 - estimate) + PRIOR
    low, high = betaincinv(right, wrong, np.array([1 - LEVEL, 1 + LEVEL]) / 2)
    gain = (1 - uncorrected) * (1 - error_left)
    return ExpectedAccuracy(method, estimate, float(low), float(high), uncorrected, gain)


def tied_with(correct: Floats, chosen: int) -> list[bool]:
    """Return which methods are not significantly worse than the chosen one.

    A method is significantly worse if the t interval of the difference over samples lies above 0. Its level covers all
    comparisons together (Bonferroni).

    Args:
        correct: As for `expected_accuracy`.
        chosen: The chosen method.
    """
    methods, samples = correct.shape
    differences = correct[chosen] - correct
    errors = differences.std(1, ddof=1) / samples**0.5
    bound = stdtrit(samples - 1, 1 - (1 - LEVEL) / 2 / max(methods - 1, 1))
    return [bool(flag) for flag in differences.mean(1) <= bound * errors]

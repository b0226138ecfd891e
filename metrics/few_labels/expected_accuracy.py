"""The accuracy that is expected of a classifier which was chosen among several, from left-out predictions alone."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtrit

from headstart.metrics.arrays import Floats, Indices

BOOTSTRAPS = 1_000
# Correct and wrong predictions that are added before an interval is computed (Jeffreys).
PRIOR = 0.5
# The power of the number of labels by which errors fall, pooled over other targets.
EXPONENT = 0.25


@dataclass(frozen=True)
class ExpectedAccuracy:
    """The expected accuracy of the chosen method, fitted to all labels.

    Attributes:
        estimate: The accuracy.
        low: Lower end of its interval.
        high: Upper end.
        uncorrected: The share of left-out predictions of the chosen method that are right.
    """

    estimate: float
    low: float
    high: float
    uncorrected: float


def choose(scores: Floats) -> Indices:
    """Return the method of the highest score, the first of equal ones, `[...]`.

    Args:
        scores: `[..., methods]`, the method that is best on other data first.
    """
    # Equal sums of the same shares in another order differ by rounding.
    best = scores.max(-1, keepdims=True) - 1e-9
    return np.asarray((scores >= best).argmax(-1))


def bootstrap_corrected(correct: Floats, seed: int = 0) -> float:
    """Return the accuracy of the choice among methods, without the optimism of having chosen on the same samples.

    Source: Ioannis Tsamardinos, Elissavet Greasidou, Giorgos Borboudakis, "Bootstrapping the out-of-sample predictions
    for efficient and accurate cross-validation", Machine Learning, 2018, algorithm 3 (BBC-CV): on every bootstrap sample
    of the samples the best method is chosen, and scored on the samples that are not in it; the estimate is the mean.

    Args:
        correct: Share of the left-out predictions of each sample that are right, `[methods, samples]`.
        seed: Seed of the bootstrap.
    """
    samples = correct.shape[1]
    if len(correct) == 1 or samples < 2:
        return float(correct.mean())
    generator = np.random.default_rng((seed, 2))
    drawn = generator.multinomial(samples, np.full(samples, 1 / samples), size=BOOTSTRAPS)
    drawn = drawn[(drawn == 0).any(1)]

    chosen = choose(drawn @ correct.T)
    left_out = (drawn == 0).astype(np.float64)
    right = (left_out @ correct.T)[np.arange(len(drawn)), chosen]
    return float((right / left_out.sum(1)).mean())


def expected_accuracy(
    correct: Floats, learnt_share: float, level: float = 0.95, seed: int = 0
) -> ExpectedAccuracy:
    """Return the expected accuracy of the chosen method after it has learnt all samples, with its interval.

    Args:
        correct: Share of the left-out predictions of each sample that are right, `[methods, samples]`, the method that
            is best on other data first.
        learnt_share: Share of the samples that each prediction was learnt from.
        level: Probability that the interval holds the accuracy.
        seed: Seed of the bootstrap.
    """
    uncorrected = float(correct[choose(correct.mean(1))].mean())
    estimate = 1 - (1 - bootstrap_corrected(correct, seed)) * learnt_share**EXPONENT
    effective = correct.shape[1] * learnt_share
    right, wrong = effective * estimate + PRIOR, effective * (1 - estimate) + PRIOR
    low, high = betaincinv(right, wrong, np.array([1 - level, 1 + level]) / 2)
    return ExpectedAccuracy(estimate, float(low), float(high), uncorrected)


def tied_with(correct: Floats, chosen: int, level: float = 0.95) -> list[bool]:
    """Return which methods the samples do not tell apart from the chosen one.

    Two methods are told apart if the t interval of their difference over samples, at the level of all comparisons
    together (Bonferroni), does not hold 0.

    Args:
        correct: As for `expected_accuracy`.
        chosen: The chosen method.
        level: Level of the comparisons.
    """
    methods, samples = correct.shape
    differences = correct[chosen] - correct
    errors = differences.std(1, ddof=1) / samples**0.5
    bound = stdtrit(samples - 1, 1 - (1 - level) / 2 / max(methods - 1, 1))
    return [bool(flag) for flag in differences.mean(1) <= bound * errors]

"""Aggregates over settings: bootstrap weights, interquartile means and probabilities of improvement."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy  # imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats

Counts = NDArray[np.number[Any]]
RESAMPLES, SEED, LEVEL = 1_000, 0, 0.95
# Counts that fit into a processor's cache, and how many times as many are drawn at once.
AT_ONCE, DRAWN = 2**16, 16


def bootstrap_counts(sizes: Sequence[int], resamples: int = RESAMPLES) -> Iterator[Counts]:
    """Sample how often each ordering of each setting occurs in every resample.

    Args:
        sizes: Number of orderings of each setting; as many of its own are sampled, with replacement.
        resamples: Number of resamples.

    Yields:
        Counts in some resamples, `[some resamples, orderings of all settings]`, in as few bits as hold them.
    """
    generators = [np.random.default_rng((SEED, stratum)) for stratum in range(len(sizes))]
    at_once = DRAWN * _rows(sum(sizes))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        drawn = zip(generators, sizes, strict=True)
        counts = np.hstack([generator.multinomial(size, np.full(size, 1 / size), count) for generator, size in drawn])
        yield counts.astype(np.min_scalar_type(counts.max()))


def _rows(orderings: int) -> int:
    """Return the number of resamples of so many orderings that fit into a processor's cache."""
    return max(1, AT_ONCE // orderings)


def percentile_interval(resampled: Floats, level: float = LEVEL) -> Floats:
    """Compute the percentile interval of values `[resamples, ...]`, lower and upper end first, `[2, ...]`."""
    tail = round((1 - level) / 2, 12)
    return np.asarray(np.quantile(resampled, [tail, 1 - tail], axis=0, method="inverted_cdf"))


def jackknife_values(value: float, without: Floats) -> Floats:
    """Return values of which an estimate is the mean, and whose intervals are those of the jackknife: `[n]`.

    They are Tukey's pseudo-values, moved so that their mean is the estimate: those of a mean are the values themselves.

    Source: Bradley Efron and Charles Stein, "The Jackknife Estimate of Variance", Annals of Statistics, 1981, section
    2.

    Args:
        value: The estimate from all units.
        without: The estimate with each of n units left out, `[n]`.
    """
    return np.asarray(value - (len(without) - 1) * (without - without.mean()))


def jackknife_error(without: Floats) -> Floats:
    """Estimate the standard error of estimates from those with each part of the data left out, `[...]`.

    It is the root of `(parts - 1) / parts` times the sum of squares of their deviations from their mean. For scores,
    sampling with replacement would be worse: on few samples, a repeated sample is easy to predict and raises the score.
    `benchmarks/coverage/scores.py` measures both.

    Source: Bradley Efron and Charles Stein, "The Jackknife Estimate of Variance", Annals of Statistics, 1981, section
    2. For groups of samples in place of single ones: Phillip S. Kott, "The Delete-a-Group Jackknife", Journal of
    Official Statistics, 2001.

    Args:
        without: `[..., parts]`, two parts at least; NaN or 0 with one.
    """
    return np.asarray(np.std(without, axis=-1) * (without.shape[-1] - 1) ** 0.5)


def interquartile_means(values: Sequence[Floats], counts: Iterable[Counts]) -> Floats:
    """Compute the mean of the middle half of all runs of all settings, with equal weight of settings, by resample.

    Source: Rishabh Agarwal, Max Schwarzer, Pablo Samuel Castro, Aaron Courville and Marc G. Bellemare, "Deep
    Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS, 2021, sections 4.1 and 4.3: the mean
    without the lowest and the highest quarter, of resamples that keep the number of runs of each setting. Two things
    differ. In settings with more orderings, each run weighs less. A run at the border of the middle half counts in part
    here, and as a whole there.

    Args:
        values: Of each setting, `[methods, orderings]`.
        counts: How often each ordering counts, the same for all methods, as `bootstrap_counts` yields it; all resamples
            have as many runs.

    Returns:
        `[resamples, methods]`.
    """
    most = max(table.shape[1] for table in values)
    runs = np.concatenate(values, axis=1)
    shares = np.concatenate([np.full(table.shape[1], most / table.shape[1]) for table in values])
    # Counts are exact in 32 bits, and whole numbers are added several times as fast.
    is_whole = (shares == 1).all()
    summed, kind = (np.int32, np.float32) if is_whole else (np.float64, np.float64)

    total = most * len(values)
    cut, rows, means = total / 4, _rows(runs.shape[1]), []
    orders = np.argsort(runs, axis=1, kind="stable")
    ordered = np.take_along_axis(runs, orders, axis=1)
    steps = np.diff(ordered)
    for part in (drawn[start : start + rows] for drawn in counts for start in range(0, len(drawn), rows)):
        weights = part if is_whole else part * shares
        averages = []
        for sorted_runs, step, order in zip(ordered, steps, orders, strict=True):
            # Weight of the middle half up to each value; the weight above it counts as the next value, step by step.
            sums = np.cumsum(weights[:, order], axis=1, dtype=summed)
            middle = np.clip(sums, cut, total - cut, dtype=kind)
            averages.append(sorted_runs[-1] - (middle[:, :-1] - cut) @ step / (total - 2 * cut))
        means.append(np.stack(averages, axis=1))
    return np.concatenate(means)


def probabilities_of_improvement(values: Sequence[Floats]) -> Floats:
    """Compute the probability that one method takes fewer samples than another on the same ordering, a tie half.

    It is the share of orderings in a setting, averaged over settings. Its 95 % interval adds 2 / settings won and as
    many lost orderings to each setting. It is therefore not empty where one method always wins. A tie lowers the
    variance.

    Source: Robert J. Grissom and John J. Kim, "Effect Sizes for Research", Routledge, 2012, chapter 5, the probability
    of superiority of dependent groups; for the interval Robert M. Price and Douglas G. Bonett, "An Improved Confidence
    Interval for a Linear Function of Binomial Proportions", Computational Statistics and Data Analysis, 2004.

    Args:
        values: Values of each setting, lower is better, `[methods, orderings]`.

    Returns:
        The probabilities and the ends of their intervals, `[3, methods, methods]`, of the method of the second axis
        against that of the third.
    """
    added = 2 / len(values)
    means, centres, variances = [], [], []
    for table in values:
        one, other = table[:, None], table[None]
        wins, ties = (one < other).sum(-1), (one == other).sum(-1)
        count = table.shape[1] + 2 * added
        means.append((wins + ties / 2) / table.shape[1])
        centres.append((wins + ties / 2 + added) / count)
        variances.append(((wins + ties / 4 + added) / count - centres[-1] ** 2) / count)
    centre = np.mean(centres, axis=0)
    half = scipy.special.ndtri((1 + LEVEL) / 2) * np.sum(variances, axis=0) ** 0.5 / len(values)
    return np.stack([np.mean(means, axis=0), np.maximum(centre - half, 0), np.minimum(centre + half, 1)])

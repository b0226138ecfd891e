"""Aggregates over settings: bootstrap weights, ranks, interquartile means and probabilities of improvement."""

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.scores import t_half_width

Values = NDArray[np.float64]
RESAMPLES, SEED, LEVEL = 1_000, 0, 0.95
# Numbers that fit into a processor's cache.
AT_ONCE = 2**16


def bootstrap_counts(orderings: int, stratum: int, resamples: int = RESAMPLES) -> Values:
    """Sample how often each ordering occurs in every resample, `[resamples, orderings]`.

    Args:
        orderings: Number of orderings; as many are sampled, with replacement.
        stratum: Number of the setting; each setting has samples of its own.
        resamples: Number of resamples.
    """
    generator = np.random.default_rng((SEED, stratum))
    return generator.multinomial(orderings, np.full(orderings, 1 / orderings), resamples).astype(np.float64)


def ranks(values: Values) -> Values:
    """Rank along the last axis, 1 being the lowest; equal values share the mean of their ranks."""
    below = (values[..., None, :] < values[..., None]).sum(-1)
    equal = (values[..., None, :] == values[..., None]).sum(-1)
    ranked: Values = below + (equal + 1) / 2
    return ranked


def percentile_interval(resampled: Values, level: float = LEVEL) -> Values:
    """Compute the percentile interval of values `[resamples, ...]`, lower and upper end first, `[2, ...]`."""
    tail = round((1 - level) / 2, 12)
    interval: Values = np.quantile(resampled, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return interval


def jackknife_interval(value: float, without: Values, level: float = LEVEL) -> tuple[float, float]:
    """Compute the t interval of an estimate by the jackknife: lower and upper end.

    Source: Bradley Efron and Charles Stein, "The Jackknife Estimate of Variance", Annals of Statistics, 1981, section
    2.

    Args:
        value: The estimate from all units.
        without: The estimate with each of n units left out, `[n]`.
        level: Share of the intervals that hold the true value.

    Returns:
        The ends; NaN with fewer than three units, and where the estimate is undefined without one of them.
    """
    count = len(without)
    if count < 3 or not np.isfinite(without).all():
        return float("nan"), float("nan")
    half = t_half_width(float(np.std(without)) * (count - 1) ** 0.5, count - 1, level)
    return value - half, value + half


def interquartile_means(values: list[Values], counts: list[Values]) -> Values:
    """Compute the mean of the middle half of all runs of all settings, with equal weight of settings, by resample.

    Source: Rishabh Agarwal, Max Schwarzer, Pablo Samuel Castro, Aaron Courville and Marc G. Bellemare, "Deep
    Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS, 2021, sections 4.1 and 4.3: the mean
    without a quarter at either end, of resamples that keep the number of runs of each setting. Two things differ: of
    settings with more orderings each run weighs less, and of a run at the border of the middle half a part counts,
    where they count it whole.

    Args:
        values: Of each setting, `[methods, orderings]`.
        counts: How often each ordering counts, of each setting `[resamples, orderings]`, the same for all methods; all
            resamples have as many runs.

    Returns:
        `[resamples, methods]`.
    """
    most = max(each.shape[1] for each in values)
    shares = [each * (most / each.shape[1]) for each in counts]
    runs, weights = np.concatenate(values, axis=1), np.concatenate(shares, axis=1)
    if all(each.shape[1] == most for each in values):
        # Counts are exact in 32 bits.
        weights = weights.astype(np.float32)

    total = most * len(values)
    cut = total / 4
    means = np.empty((len(weights), len(runs)))
    orders = np.argsort(runs, axis=1, kind="stable")
    step = max(1, AT_ONCE // runs.shape[1])
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        for method, (own, order) in enumerate(zip(runs, orders, strict=True)):
            # Weight of the middle half up to each value; the weight above it counts as the next value, step by step.
            middle = np.clip(np.cumsum(weights[part, order], axis=1), cut, total - cut)
            means[part, method] = own[order[-1]] - (middle[:, :-1] - cut) @ np.diff(own[order]) / (total - 2 * cut)
    return means


def probabilities_of_improvement(values: Values, counts: Values) -> Values:
    """Compute the probability that a run of one method takes fewer samples than one of another, a tie counting half.

    Source: Agarwal et al., as `interquartile_means`, section 4.3: the Mann-Whitney statistic of the runs of a setting.

    Args:
        values: Values of one setting, lower is better, `[methods, orderings]`.
        counts: How often each ordering counts, `[resamples, orderings]`.

    Returns:
        `[resamples, methods, methods]`, of the method of the second axis against that of the third.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    # The value of each ordering, `[methods, orderings, values]`.
    has = (codes.reshape(values.shape)[..., None] == np.arange(len(distinct))).astype(np.float32)
    probabilities = np.empty((len(counts), len(values), len(values)))
    step = max(1, AT_ONCE // (len(values) * len(distinct)))
    for start in range(0, len(counts), step):
        part = counts[start : start + step].astype(np.float32)
        # Runs of each value, and those above it, which are exact in 32 bits.
        here = (part @ has).swapaxes(0, 1)
        above = part.sum(1)[:, None, None] - here.cumsum(-1) + here / 2
        probabilities[start : start + step] = here @ above.swapaxes(1, 2)
    probabilities /= counts.sum(1)[:, None, None] ** 2
    return probabilities

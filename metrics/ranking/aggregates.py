"""Aggregates over settings: bootstrap weights, ranks, interquartile means and probabilities of improvement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
RESAMPLES, SEED, LEVEL = 2_000, 0, 0.95


def bootstrap_counts(orderings: int, stratum: int, resamples: int = RESAMPLES) -> Values:
    """Draw how often each ordering comes in every resample, `[resamples, orderings]`.

    Args:
        orderings: How many there are; as many are drawn, with replacement.
        stratum: Number of the setting, of which each has draws of its own.
        resamples: How many.
    """
    generator = np.random.default_rng((SEED, stratum))
    return generator.multinomial(orderings, np.full(orderings, 1 / orderings), resamples).astype(np.float64)


def ranks(values: Values) -> Values:
    """Rank along the last axis, 1 being the lowest; equals share the mean of their ranks."""
    below = (values[..., None, :] < values[..., None]).sum(-1)
    equal = (values[..., None, :] == values[..., None]).sum(-1)
    found: Values = below + (equal + 1) / 2
    return found


def percentile_interval(resampled: Values, level: float = LEVEL) -> Values:
    """Give the percentile interval of values `[resamples, ...]`, lower and upper end first, `[2, ...]`."""
    found: Values = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    return found


def interquartile_mean(values: Values) -> Values:
    """Give the mean of the middle half of values along the last axis.

    Source: Rishabh Agarwal, Max Schwarzer, Pablo Samuel Castro, Aaron Courville and Marc G. Bellemare, "Deep
    Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS, 2021, section 4.3: the mean trimmed by
    a quarter, rounded down, of the values at either end.
    """
    count = values.shape[-1]
    cut = count // 4
    middle = np.partition(values, [cut, count - cut - 1], axis=-1)[..., cut : count - cut]
    found: Values = middle.mean(-1)
    return found


def resampled_interquartile_means(values: list[Values]) -> Values:
    """Give the interquartile means over all runs of all settings of stratified resamples.

    In every resample each setting has as many orderings as before, drawn from its own, the same for all methods.

    Source: Agarwal et al., as `interquartile_mean`, section 4.1.

    Args:
        values: Of each setting, `[methods, orderings]`.

    Returns:
        `[resamples, methods]`.
    """
    drawn = [
        np.random.default_rng((SEED, stratum)).integers(each.shape[1], size=(RESAMPLES, each.shape[1]))
        for stratum, each in enumerate(values)
    ]
    methods = range(len(values[0]))
    return np.stack(
        [
            interquartile_mean(
                np.concatenate([each[method][places] for each, places in zip(values, drawn, strict=True)], axis=1)
            )
            for method in methods
        ],
        axis=-1,
    )


def probabilities_of_improvement(values: Values, counts: Values) -> Values:
    """Give the probability that a run of one method takes fewer samples than one of another, a tie counting one half.

    Source: Agarwal et al., as `interquartile_mean`, section 4.3: the Mann-Whitney statistic of the runs of a setting.

    Args:
        values: Values of one setting, lower is better, `[methods, orderings]`.
        counts: How often each ordering counts, `[resamples, orderings]`.

    Returns:
        `[resamples, methods, methods]`, of the method of the second axis against that of the third.
    """
    known, places = np.unique(values, return_inverse=True)
    share = np.zeros((len(counts), len(values), len(known)))
    for method, place in enumerate(places.reshape(values.shape)):
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        share[:, method, place[order][starts]] = np.add.reduceat(counts[:, order], starts, axis=1)
    share /= counts.sum(1)[:, None, None]
    at_most = share.cumsum(-1)
    found: Values = share @ (1 - at_most + share / 2).swapaxes(1, 2)
    return found

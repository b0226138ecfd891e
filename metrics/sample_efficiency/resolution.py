"""Resolution of a comparison: tests of all pairs of methods, groups, ranks, and the orderings that a pair needs."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy  # imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.scores import sign_patterns

Values = NDArray[np.float64]
LEVEL, POWER = 0.05, 0.8
# Most sign patterns of the tests of all pairs; up to 13 orderings have fewer.
PATTERNS = 9_999
MOST_GROUPS = 500
# Simulated numbers of orderings, and simulations of each; with fewer than six no sign-flip test reaches 5 %.
FEWEST, MOST, STEP, SIMULATED, SEED = 6, 10_000, 1.35, 500, 0


class AllPairs(NamedTuple):
    """Results of the tests of all pairs.

    Attributes:
        p_values: Adjusted p values, symmetric, `[methods, methods]`; 1 where two methods are the same throughout, and
            for a single ordering.
        levels: Level of a single test of each method and the next one that is as strict as the test among all pairs,
            `[methods - 1]`: that of a normal variable for the critical value of the pair's step.
    """

    p_values: Values
    levels: Values


def compare_all_pairs(values: Values) -> AllPairs:
    """Test all pairs of methods for a difference of their means, two-sided, adjusted for testing all of them.

    The signs of all pairs' differences are flipped together, ordering by ordering. Each pair's difference, over the
    root of its sum of squares, is compared with the largest among the pairs that differ no more (step-down). The
    family-wise error rate is that of one test, and no power is lost on pairs that are correlated.

    Source: Peter H. Westfall and S. Stanley Young, "Resampling-Based Multiple Testing", Wiley, 1993, algorithm 2.8,
    with sign flips in place of permutations.

    Args:
        values: Restricted samples to criterion on the same orderings, `[methods, orderings]`.
    """
    methods, orderings = values.shape
    adjusted, levels = np.ones((methods, methods)), np.full(max(methods - 1, 0), LEVEL)
    first, second = np.triu_indices(methods, 1)
    scale = np.sqrt(((values[first] - values[second]) ** 2).sum(-1))
    first, second, scale = (each[scale > 0] for each in (first, second, scale))
    if orderings < 2 or not len(first):
        return AllPairs(adjusted, levels)

    # Values above the first method are smaller numbers, so that 32 bits are exact for whole numbers, such as samples,
    # and enough for others. The last column is the observed pattern.
    patterns, is_sampled = _patterns(orderings)
    values = values - values[0]
    flipped = np.column_stack([values @ patterns.T.astype(np.float64), values.sum(-1)]).astype(np.float32)
    observed = np.abs(flipped[first, -1] - flipped[second, -1]) / scale
    largest, exceeded = np.zeros(len(patterns), dtype=np.float32), np.zeros(len(first))

    # Pairs come in ascending order, so that `largest` is the maximum over all pairs that differ no more.
    order = np.argsort(observed, kind="stable")
    for pair in order:
        null = flipped[first[pair], :-1] - flipped[second[pair], :-1]
        np.maximum(largest, np.abs(null, out=null) / np.float32(scale[pair]), out=largest)
        exceeded[pair] = np.count_nonzero(largest >= np.float32(observed[pair] * (1 - 1e-6)))
        if second[pair] == first[pair] + 1:
            levels[first[pair]] = min(2 * scipy.special.ndtr(-np.quantile(largest, 1 - LEVEL)), LEVEL)

    # The observed pattern counts in addition to sampled ones.
    p_values = (exceeded + is_sampled) / (len(patterns) + is_sampled)
    # A pair that differs more has no larger p value.
    falling = order[::-1]
    p_values[falling] = np.maximum.accumulate(p_values[falling])
    adjusted[first, second] = adjusted[second, first] = p_values
    return AllPairs(adjusted, levels)


@lru_cache(maxsize=1)
def _patterns(orderings: int) -> tuple[NDArray[np.float32 | np.int8], bool]:
    """Return sign patterns, and whether they are a random sample of all."""
    patterns = sign_patterns(orderings)
    if len(patterns) <= PATTERNS:
        return patterns, False
    return patterns[np.random.default_rng(SEED).choice(len(patterns), PATTERNS, replace=False)], True


def rank_intervals(means: Values, apart: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return simultaneous intervals of the ranks of all methods, with the coverage of the tests.

    A method's rank is at least one more than the number of better methods, and at most the number of methods less the
    worse ones. A bootstrap of ranks is too sure about the order of close methods
    (`benchmarks/coverage/resolution_coverage.py`).

    Source: Magne Mogstad, Joseph P. Romano, Azeem M. Shaikh and Daniel Wilhelm, "Inference for Ranks with Applications
    to Mobility across Neighbourhoods and Academic Achievement across Countries", Review of Economic Studies, 2024,
    section 3.

    Args:
        means: Restricted means, lower is better, `[methods]`.
        apart: Whether pairs differ significantly, symmetric, `[methods, methods]`.

    Returns:
        Lowest and highest rank, `[methods, 2]`.
    """
    better, worse = ((apart & (sign * (means[:, None] - means) > 0)).sum(1) for sign in (1, -1))
    return np.column_stack([1 + better, len(means) - worse])


def maximal_groups(apart: NDArray[np.bool_]) -> list[list[int]]:
    """Return the largest sets of methods without a significant difference, which together define all differences.

    Source: Hans-Peter Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of
    Computational and Graphical Statistics, 2004, "insert and absorb".

    Args:
        apart: Whether pairs differ significantly, symmetric, `[methods, methods]`.

    Returns:
        Indices of the methods of each group, sorted; no groups if there are more than `MOST_GROUPS`, since hundreds of
        methods of different spread can have any number of groups.
    """
    groups = {frozenset(range(len(apart)))}
    for first, second in np.argwhere(np.triu(apart)).tolist():
        both = {group for group in groups if first in group and second in group}
        groups -= both
        for smaller in sorted((group - {each} for group in both for each in (first, second)), key=len, reverse=True):
            if not any(smaller <= group for group in groups):
                groups.add(smaller)
        if len(groups) > MOST_GROUPS:
            return []
    return sorted(sorted(group) for group in groups)


def orderings_needed(differences: Values, levels: Values) -> list[int | None]:
    """Return the numbers of orderings with which pairs would differ significantly, by simulation.

    Experiments of n orderings are sampled with replacement from the observed differences, whose mean stands for the
    true one. The number is the least n for which a paired t test rejects equality in 80 % of the experiments,
    interpolated between the simulated numbers.

    Source: Bradley Efron and Robert J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993, section
    25.6.

    Args:
        differences: Differences of several pairs of methods on the same orderings, `[orderings, pairs]`.
        levels: Levels of the tests, `[pairs]`.

    Returns:
        Of each pair, None where more than `MOST` are needed or the methods do not differ, and for a single ordering.
    """
    if len(differences) < 2:
        return [None] * differences.shape[1]
    power = np.array([_power(differences, levels, n) for n in _simulated()])
    return [_first_above(each) for each in power.T]


def _simulated() -> list[int]:
    steps = int(np.log(MOST / FEWEST) / np.log(STEP))
    return [*dict.fromkeys(round(FEWEST * STEP**k) for k in range(steps + 1)), MOST]


def _power(differences: Values, levels: Values, orderings: int) -> Values:
    """Return the share of experiments of so many orderings in which each pair differs significantly, `[pairs]`."""
    counts = _counts(len(differences), orderings).astype(np.float64)
    mean = counts @ differences / orderings
    variance = np.maximum(counts @ differences**2 / orderings - mean**2, 0) * orderings / (orderings - 1)
    # The variance of equal values is only a rounding error.
    variance[variance <= 1e-12 * mean**2] = 0
    half = scipy.special.stdtrit(orderings - 1, 1 - levels / 2) * np.sqrt(variance / orderings)
    return np.asarray((np.abs(mean) > half).mean(0))


@lru_cache(maxsize=64)
def _counts(observed: int, orderings: int) -> NDArray[np.int16]:
    """Return the count of each observed ordering in every experiment, `[experiments, observed]`."""
    generator = np.random.default_rng((SEED, observed, orderings))
    return generator.multinomial(orderings, np.full(observed, 1 / observed), SIMULATED).astype(np.int16)


def _first_above(power: Values) -> int | None:
    """Return the number of orderings from which on the simulated power `[numbers]` stays above `POWER`."""
    below = np.flatnonzero(power < POWER)
    numbers = _simulated()
    if len(below) == 0:
        return numbers[0]
    last = int(below[-1])
    if last + 1 == len(power):
        return None
    share = (POWER - power[last]) / (power[last + 1] - power[last])
    return int(np.ceil(numbers[last] * (numbers[last + 1] / numbers[last]) ** share))

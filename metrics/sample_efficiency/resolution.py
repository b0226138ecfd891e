"""What a comparison can tell apart: tests of all pairs of methods, groups, and the orderings that a pair would need."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy  # which imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.scores import sign_patterns

LEVEL, POWER = 0.05, 0.8
# Sign patterns of the tests of all pairs at most; all are taken of up to 13 orderings.
PATTERNS = 9_999
MOST_GROUPS = 500
# Numbers of orderings that are simulated, each this many times; with fewer than six no sign-flip test reaches 5 %.
FEWEST, MOST, STEP, SIMULATED, SEED = 6, 10_000, 1.35, 500, 0


class AllPairs(NamedTuple):
    """What the tests of all pairs say.

    Attributes:
        p_values: Adjusted, symmetric, `[methods, methods]`; 1 where two methods are the same throughout, and for a
            single ordering.
        levels: The level at which each method and the next one would have to differ alone to be told apart among all,
            `[methods - 1]`: that of a normal variable for the critical value of the pair's step.
    """

    p_values: NDArray[np.float64]
    levels: NDArray[np.float64]


def compare_all_pairs(values: NDArray[np.float64]) -> AllPairs:
    """Test all pairs of methods for a difference of their means, two-sided, adjusted for testing all of them.

    The signs of all pairs' differences are flipped together, ordering by ordering, and each pair's difference, over the
    root of its sum of squares, is compared with the largest among the pairs that differ no more (step-down). So the
    chance of any false find is held at the level of one test, and no power is lost on pairs that move together.

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
    patterns, drawn = _patterns(orderings)
    # Differences are those of what is above the first method, which is less. 32 bits are exact for whole numbers, as
    # samples are, and enough for others. The last column is the observed one.
    values = values - values[0]
    flipped = np.column_stack([values @ patterns.T.astype(np.float64), values.sum(-1)]).astype(np.float32)
    observed = np.abs(flipped[first, -1] - flipped[second, -1]) / scale
    largest, exceeded = np.zeros(len(patterns), dtype=np.float32), np.zeros(len(first))
    order = np.argsort(observed, kind="stable")
    # From the pair that differs least, so that `largest` is that among all pairs that differ no more.
    for pair in order:
        null = flipped[first[pair], :-1] - flipped[second[pair], :-1]
        np.maximum(largest, np.abs(null, out=null) / np.float32(scale[pair]), out=largest)
        exceeded[pair] = np.count_nonzero(largest >= np.float32(observed[pair] * (1 - 1e-6)))
        if second[pair] == first[pair] + 1:
            levels[first[pair]] = min(2 * scipy.special.ndtr(-np.quantile(largest, 1 - LEVEL)), LEVEL)
    # Of patterns that are drawn, the observed one is one more.
    p_values = (exceeded + drawn) / (len(patterns) + drawn)
    # A pair that differs more is never less sure.
    falling = order[::-1]
    p_values[falling] = np.maximum.accumulate(p_values[falling])
    adjusted[first, second] = adjusted[second, first] = p_values
    return AllPairs(adjusted, levels)


@lru_cache(maxsize=1)
def _patterns(orderings: int) -> tuple[NDArray[np.float32 | np.int8], bool]:
    """Give all sign patterns where they are few, else some that are drawn, and whether they are."""
    patterns = sign_patterns(orderings)
    if len(patterns) <= PATTERNS:
        return patterns, False
    return patterns[np.random.default_rng(SEED).choice(len(patterns), PATTERNS, replace=False)], True


def rank_intervals(means: NDArray[np.float64], apart: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give intervals that hold the ranks of all methods at once, as surely as the tests find no false difference.

    A method's rank is one more than the methods that are better at least, and the number of methods less those that are
    worse at most. A bootstrap of ranks does not do: it takes the order of methods that are close for better known than
    it is (`benchmarks/resolution_coverage.py`).

    Source: Magne Mogstad, Joseph P. Romano, Azeem M. Shaikh and Daniel Wilhelm, "Inference for Ranks with Applications
    to Mobility across Neighbourhoods and Academic Achievement across Countries", Review of Economic Studies, 2024,
    section 3.

    Args:
        means: Restricted means, lower is better, `[methods]`.
        apart: Which pairs are told apart, symmetric, `[methods, methods]`.

    Returns:
        Lowest and highest rank, `[methods, 2]`.
    """
    better, worse = ((apart & (sign * (means[:, None] - means) > 0)).sum(1) for sign in (1, -1))
    return np.column_stack([1 + better, len(means) - worse])


def maximal_groups(apart: NDArray[np.bool_]) -> list[list[int]]:
    """Give the largest sets of methods no two of which are told apart; together they say all that is told apart.

    Source: Hans-Peter Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of
    Computational and Graphical Statistics, 2004, "insert and absorb".

    Args:
        apart: Which pairs are told apart, symmetric, `[methods, methods]`.

    Returns:
        Places of the methods of each group, by their first ones; none where there are more than `MOST_GROUPS`, of which
        hundreds of methods of unlike spread can have any number.
    """
    groups = {frozenset(range(len(apart)))}
    for one, other in np.argwhere(np.triu(apart)).tolist():
        both = {group for group in groups if one in group and other in group}
        groups -= both
        for smaller in sorted((group - {each} for group in both for each in (one, other)), key=len, reverse=True):
            if not any(smaller <= group for group in groups):
                groups.add(smaller)
        if len(groups) > MOST_GROUPS:
            return []
    return sorted(sorted(group) for group in groups)


def orderings_needed(differences: NDArray[np.float64], levels: NDArray[np.float64]) -> list[int | None]:
    """Give the number of orderings that would tell methods apart, by simulation from the observed pairs.

    Experiments of n orderings are drawn with replacement from the observed differences, whose mean is so taken for the
    true one. What is given is the least n for which a paired t test refuses equality in 80 % of them, interpolated
    between the simulated numbers.

    Source: Bradley Efron and Robert J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993, section
    25.6.

    Args:
        differences: Of several pairs of methods on the same orderings, `[orderings, pairs]`.
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


def _power(differences: NDArray[np.float64], levels: NDArray[np.float64], orderings: int) -> NDArray[np.float64]:
    """Give the share of experiments of so many orderings that find each pair's difference, `[pairs]`."""
    counts = _draws(len(differences), orderings).astype(np.float64)
    mean = counts @ differences / orderings
    variance = np.maximum(counts @ differences**2 / orderings - mean**2, 0) * orderings / (orderings - 1)
    # Rounding leaves a little where all that was drawn is equal.
    variance[variance <= 1e-12 * mean**2] = 0
    half = scipy.special.stdtrit(orderings - 1, 1 - levels / 2) * np.sqrt(variance / orderings)
    found: NDArray[np.float64] = (np.abs(mean) > half).mean(0)
    return found


@lru_cache(maxsize=64)
def _draws(observed: int, orderings: int) -> NDArray[np.int16]:
    """Give how often each observed ordering comes in every experiment, `[experiments, observed]`."""
    generator = np.random.default_rng((SEED, observed, orderings))
    return generator.multinomial(orderings, np.full(observed, 1 / observed), SIMULATED).astype(np.int16)


def _first_above(power: NDArray[np.float64]) -> int | None:
    """Give the number of orderings from which on the simulated power `[numbers]` stays at what is asked."""
    below = np.flatnonzero(power < POWER)
    numbers = _simulated()
    if len(below) == 0:
        return numbers[0]
    last = int(below[-1])
    if last + 1 == len(power):
        return None
    share = (POWER - power[last]) / (power[last + 1] - power[last])
    return int(np.ceil(numbers[last] * (numbers[last + 1] / numbers[last]) ** share))

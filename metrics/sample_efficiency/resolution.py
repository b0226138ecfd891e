"""Resolution of a comparison: tests of all pairs of methods, groups, ranks, and the orderings that a pair needs."""

from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters
from typing import NamedTuple

import numpy as np
import scipy  # imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.sample_efficiency.scores import is_exact_in_floats
from headstart.metrics.sample_efficiency.sign_flips import is_decided, stages

LEVEL, POWER = 0.05, 0.8
MOST_GROUPS = 500
# Signs that are multiplied at once.
MOST_SIGNS = 2**21
# Simulated numbers of orderings, and simulations of each; with fewer than six no sign-flip test reaches 5 %.
FEWEST, MOST, STEP, SIMULATED, SEED = 6, 10_000, 1.35, 500, 0


class AllPairs(NamedTuple):
    """Results of the tests of all pairs.

    Attributes:
        p_values: Adjusted p values, symmetric, `[methods, methods]`; 1 where two methods are the same throughout, and
            for a single ordering.
        significant: Whether they are significant at `LEVEL`, symmetric, `[methods, methods]`.
        undecided: Whether sampled patterns leave that open, which then counts as not significant, symmetric, `[methods,
            methods]`.
        levels: Level of a single test of each method and the next one that is as strict as the test among all pairs,
            `[methods - 1]`: that of a normal variable for the critical value of the pair's step.
    """

    p_values: Floats
    significant: Flags
    undecided: Flags
    levels: Floats


def compare_all_pairs(values: Floats) -> AllPairs:
    """Test all pairs of methods for a difference of their means, two-sided, adjusted for testing all of them.

    The signs of all pairs' differences are flipped together, ordering by ordering. Each pair's difference, over the
    root of its sum of squares, is compared with the largest among the pairs that differ no more (step-down). The
    family-wise error rate is that of one test, and no power is lost on pairs that are correlated. Patterns of signs are
    enumerated, or sampled until they decide about every pair, see `is_decided`.

    Source: Peter H. Westfall and S. Stanley Young, "Resampling-Based Multiple Testing", Wiley, 1993, algorithm 2.8,
    with sign flips in place of permutations.

    Args:
        values: Restricted samples to criterion on the same orderings, `[methods, orderings]`.
    """
    methods, orderings = values.shape
    steps = _Steps.of(values)
    p_values, levels = np.ones((methods, methods)), np.full(max(methods - 1, 0), LEVEL)
    significant, undecided = np.zeros((2, methods, methods), dtype=bool)
    if orderings < 2 or not len(steps.observed):
        return AllPairs(p_values, significant, undecided, levels)

    # The pairs that differ least, up to the first one whose decision is open.
    count = len(steps.observed)
    exceeded, sampled, unseen = (np.zeros(count) for _ in range(3))
    for number, (blocks, is_exact) in enumerate(stages(orderings)):
        if is_exact:
            exceeded[:count], sampled[:count] = 0, 0
        for patterns in blocks:
            exceeded[:count] += steps.exceeded(patterns, count, levels if number == 0 else None)
            sampled[:count] += len(patterns)

        # The observed pattern counts in addition to sampled ones.
        unseen[:count] = not is_exact
        estimated = (exceeded + unseen) / (sampled + unseen)
        decided = (unseen == 0) | is_decided(exceeded, sampled, LEVEL)
        while count and decided[count - 1] and estimated[count - 1] < LEVEL:
            count -= 1
        if not count or decided[count - 1]:
            break

    # A pair that differs more has no larger p value. A pair is open that decided pairs do not keep from significance.
    adjusted = np.maximum.accumulate(estimated[::-1])[::-1]
    refused = np.flatnonzero(decided & (estimated >= LEVEL))
    is_open = np.arange(len(adjusted)) > refused.max(initial=-1)
    is_open[count:] = False
    rejected = np.arange(len(adjusted)) >= count
    for matrix, result in ((p_values, adjusted), (significant, rejected), (undecided, is_open)):
        matrix[steps.first, steps.second] = matrix[steps.second, steps.first] = result
    return AllPairs(p_values, significant, undecided, levels)


class _Steps(NamedTuple):
    """The pairs of methods that differ somewhere, in ascending order of their statistics.

    Attributes:
        values: Values less those of the first method: small numbers, so that 32 bits are exact for whole numbers, such
            as samples, and enough for others, `[methods, orderings]`.
        first: First method of each pair, `[pairs]`.
        second: Its second method, `[pairs]`.
        scale: Root of the sum of squared differences, `[pairs]`.
        observed: The statistic, `[pairs]`.
    """

    values: NDArray[np.float64 | np.float32]
    first: Indices
    second: Indices
    scale: Floats
    observed: NDArray[np.float32]

    @classmethod
    def of(cls, values: Floats) -> "_Steps":
        """Return the steps of the test of some methods."""
        first, second = np.triu_indices(len(values), 1)
        scale = np.sqrt(((values[first] - values[second]) ** 2).sum(-1))
        first, second, scale = (each[scale > 0] for each in (first, second, scale))
        values = values - values[0]
        sums = values.sum(-1).astype(np.float32)
        observed = np.abs(sums[first] - sums[second]) / scale
        order = np.argsort(observed, kind="stable")
        if is_exact_in_floats(values):
            values = values.astype(np.float32)
        return cls(values, first[order], second[order], scale[order], (observed[order] * (1 - 1e-6)).astype(np.float32))

    def exceeded(self, patterns: NDArray[np.float32 | np.int8], count: int, levels: Floats | None) -> Floats:
        """Count the patterns in which the largest statistic up to a step is at least the observed one.

        Args:
            patterns: Patterns of signs, `[patterns, orderings]`.
            count: Number of steps.
            levels: Where to write the levels of neighbours, as `AllPairs` has them.
        """
        parts = np.array_split(patterns, -(-patterns.size // MOST_SIGNS))
        kind = self.values.dtype
        flipped = np.hstack([self.values @ part.T.astype(kind, copy=False) for part in parts]).astype(np.float32)
        largest, exceeded = np.zeros(len(patterns), dtype=np.float32), np.zeros(count)
        for step, (first, second) in enumerate(zip(self.first[:count], self.second[:count], strict=True)):
            null = flipped[first] - flipped[second]
            np.maximum(largest, np.abs(null, out=null) / np.float32(self.scale[step]), out=largest)
            exceeded[step] = np.count_nonzero(largest >= self.observed[step])
            if levels is not None and second == first + 1:
                levels[first] = min(2 * scipy.special.ndtr(-np.quantile(largest, 1 - LEVEL)), LEVEL)
        return exceeded


def rank_intervals(means: Floats, differ: Flags) -> NDArray[np.int64]:
    """Return simultaneous intervals of the ranks of all methods, with the coverage of the tests.

    A method's rank is at least one more than the number of better methods, and at most the number of methods less the
    worse ones. A bootstrap of ranks is too sure about the order of close methods
    (`benchmarks/coverage/resolution_coverage.py`).

    Source: Magne Mogstad, Joseph P. Romano, Azeem M. Shaikh and Daniel Wilhelm, "Inference for Ranks with Applications
    to Mobility across Neighbourhoods and Academic Achievement across Countries", Review of Economic Studies, 2024,
    section 3.

    Args:
        means: Restricted means, lower is better, `[methods]`.
        differ: Whether pairs differ significantly, symmetric, `[methods, methods]`.

    Returns:
        Lowest and highest rank, `[methods, 2]`.
    """
    better, worse = ((differ & (sign * (means[:, None] - means) > 0)).sum(1) for sign in (1, -1))
    return np.column_stack([1 + better, len(means) - worse])


def maximal_groups(differ: Flags) -> list[list[int]]:
    """Return the largest sets of methods without a significant difference, which together define all differences.

    Source: Hans-Peter Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of
    Computational and Graphical Statistics, 2004, "insert and absorb".

    Args:
        differ: Whether pairs differ significantly, symmetric, `[methods, methods]`.

    Returns:
        Indices of the methods of each group, sorted; no groups if there are more than `MOST_GROUPS`, since hundreds of
        methods of different spread can have any number of groups.
    """
    groups = {frozenset(range(len(differ)))}
    for first, second in np.argwhere(np.triu(differ)).tolist():
        both = {group for group in groups if first in group and second in group}
        groups -= both
        for smaller in sorted((group - {each} for group in both for each in (first, second)), key=len, reverse=True):
            if not any(smaller <= group for group in groups):
                groups.add(smaller)
        if len(groups) > MOST_GROUPS:
            return []
    return sorted(sorted(group) for group in groups)


def group_letters(groups: Sequence[Sequence[int]], methods: int) -> list[str]:
    """Return the letters of the groups that each method is in; after z come capitals, then numbers.

    Args:
        groups: Indices of the methods of each group, as for `maximal_groups`.
        methods: Number of methods.
    """
    letters = [""] * methods
    for number, group in enumerate(groups):
        letter = ascii_letters[number] if number < len(ascii_letters) else f" {number + 1}"
        for index in group:
            letters[index] += letter
    return letters


def orderings_needed(differences: Floats, levels: Floats) -> list[int | None]:
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


def _power(differences: Floats, levels: Floats, orderings: int) -> Floats:
    """Return the share of experiments of a number of orderings in which each pair differs significantly, `[pairs]`."""
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


def _first_above(power: Floats) -> int | None:
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

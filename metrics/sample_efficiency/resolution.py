"""Resolution of a comparison: tests of all pairs of methods, groups, ranks, and the orderings that a pair needs."""

from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np
import scipy  # imports its parts when they are used
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.sample_efficiency.scores import is_exact_in_floats
from headstart.metrics.sample_efficiency.sign_flips import Patterns, is_decided, stages

LEVEL, POWER = 0.05, 0.8
MOST_GROUPS = 500
# Signs, and rows of values, that are multiplied at once.
MOST_SIGNS, MOST_ROWS = 2**21, 64
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
        levels: Level at which a single test of each method and the next one is as strict as the test among all pairs,
            `[methods - 1]`. It is that of a normal variable for the critical value of the pair's step.
    """

    p_values: Floats
    significant: Flags
    undecided: Flags
    levels: Floats


def compare_all_pairs(tables: Sequence[Floats]) -> list[AllPairs]:
    """Test all pairs of methods for a difference of their means, two-sided, adjusted for testing all pairs of a table.

    The signs of all pairs' differences are flipped together, ordering by ordering. Each pair's difference is divided by
    the root of its sum of squares. It is compared with the largest among the pairs that differ no more (step-down). The
    family-wise error rate is that of one test, and no power is lost on pairs that are correlated. Patterns of signs are
    enumerated, or sampled until they decide about every pair, see `is_decided`.

    Source: Peter H. Westfall and S. Stanley Young, "Resampling-Based Multiple Testing", Wiley, 1993, algorithm 2.8,
    with sign flips in place of permutations.

    Args:
        tables: Restricted samples to criterion on the same orderings, each `[methods, orderings]`. Each table is tested
            by itself, but tables of as many orderings share the drawn patterns.

    Returns:
        The results of each table.
    """
    tests = [_Test(values) for values in tables]
    for orderings in dict.fromkeys(test.orderings for test in tests):
        _run([test for test in tests if test.orderings == orderings])
    return [test.results() for test in tests]


def _run(tests: Sequence["_Test"]) -> None:
    """Count patterns of signs, stage by stage, until they decide about every pair of tables of as many orderings."""
    for number, (blocks, is_exact) in enumerate(stages(tests[0].orderings)):
        tests = [test for test in tests if test.is_unfinished]
        if not tests:
            return
        for test in tests:
            test.begin(is_exact)

        at_once = max(1, MOST_ROWS // max(test.methods for test in tests))
        for patterns in blocks:
            for start in range(0, len(tests), at_once):
                _count(tests[start : start + at_once], patterns, with_levels=number == 0)
        for test in tests:
            test.decide()


def _count(tests: Sequence["_Test"], patterns: Patterns, with_levels: bool) -> None:
    """Count patterns of signs for several tests, whose values are multiplied with them together."""
    values = np.concatenate([test.values for test in tests])
    flipped, parts = np.empty((len(values), len(patterns)), np.float32), -(-patterns.size // MOST_SIGNS)
    for sums, signs in zip(np.array_split(flipped, parts, axis=1), np.array_split(patterns, parts), strict=True):
        np.matmul(values, signs.T.astype(values.dtype, copy=False), out=sums)

    ends = np.cumsum([test.methods for test in tests])
    for test, of_test in zip(tests, np.split(flipped, ends[:-1]), strict=True):
        test.count(of_test, with_levels)


class _Test:
    """The test of the pairs of one table, as far as patterns of signs were counted.

    Its steps are the pairs that differ somewhere, in ascending order of their statistics; a single ordering has none.

    Args:
        values: Restricted samples to criterion, `[methods, orderings]`.
    """

    def __init__(self, values: Floats) -> None:
        self.methods, self.orderings = values.shape
        first, second = np.triu_indices(self.methods, 1)
        scale = np.sqrt(((values[first] - values[second]) ** 2).sum(-1))
        apart = (scale > 0) & (self.orderings > 1)
        first, second, scale = (values_of_pairs[apart] for values_of_pairs in (first, second, scale))

        # Small numbers: 32 bits are exact for whole ones, such as samples, and enough for others.
        values = values - values[0]
        sums = values.sum(-1).astype(np.float32)
        observed = np.abs(sums[first] - sums[second]) / scale
        order = np.argsort(observed, kind="stable")
        self.values = values.astype(np.float32) if is_exact_in_floats(values) else values
        self.first, self.second, self.scale = first[order], second[order], scale[order].astype(np.float32)
        self.observed = (observed[order] * (1 - 1e-6)).astype(np.float32)
        self.levels = np.full(max(self.methods - 1, 0), LEVEL)

        # The number of steps up to the last one whose decision is open.
        self.open = len(order)
        self.exceeded, self.drawn, self.unseen = np.zeros((3, self.open))
        self.estimated, self.decided = np.ones(self.open), np.zeros(self.open, dtype=bool)

    def begin(self, is_exact: bool) -> None:
        """Begin a stage: patterns that were drawn before do not count beside all of them."""
        if is_exact:
            self.exceeded[: self.open] = self.drawn[: self.open] = 0
        # The observed pattern counts in addition to drawn ones.
        self.unseen[: self.open] = not is_exact

    def count(self, flipped: NDArray[np.float32], with_levels: bool) -> None:
        """Count the patterns in which the largest statistic up to a step is at least the observed one.

        Args:
            flipped: Sums of each method's values with flipped signs, `[methods, patterns]`.
            with_levels: Whether to find the levels of neighbours.
        """
        largest = np.zeros(flipped.shape[1], dtype=np.float32)
        for step in range(self.open):
            first, second = self.first[step], self.second[step]
            null = flipped[first] - flipped[second]
            np.maximum(largest, np.abs(null, out=null) / self.scale[step], out=largest)
            self.exceeded[step] += np.count_nonzero(largest >= self.observed[step])
            if with_levels and second == first + 1:
                self.levels[first] = min(2 * scipy.special.ndtr(-np.quantile(largest, 1 - LEVEL)), LEVEL)
        self.drawn[: self.open] += len(largest)

    def decide(self) -> None:
        """Decide about pairs by the patterns so far."""
        self.estimated = (self.exceeded + self.unseen) / (self.drawn + self.unseen)
        self.decided = (self.unseen == 0) | is_decided(self.exceeded, self.drawn, LEVEL)
        while self.open and self.decided[self.open - 1] and self.estimated[self.open - 1] < LEVEL:
            self.open -= 1

    @property
    def is_unfinished(self) -> bool:
        """Return whether more patterns could make a pair significant."""
        return self.open > 0 and not self.decided[self.open - 1]

    def results(self) -> AllPairs:
        """Return the results."""
        steps = np.arange(len(self.estimated))
        # A pair that differs more has no larger p value.
        adjusted = np.maximum.accumulate(self.estimated[::-1])[::-1]
        # A pair is open unless a decided pair keeps it from significance.
        refused = np.flatnonzero(self.decided & (self.estimated >= LEVEL))
        is_open = (steps > refused.max(initial=-1)) & (steps < self.open)
        p_values, significant, undecided = map(self._matrix, (adjusted, steps >= self.open, is_open), (1, False, False))
        return AllPairs(p_values, significant, undecided, self.levels)

    def _matrix(self, values: NDArray[Any], without: float) -> NDArray[Any]:
        """Return values of the steps as a symmetric matrix of methods, with another one for pairs without a step."""
        matrix = np.full((self.methods, self.methods), without, dtype=values.dtype)
        matrix[self.first, self.second] = matrix[self.second, self.first] = values
        return matrix


def rank_intervals(means: Floats, differ: Flags) -> NDArray[np.int64]:
    """Return simultaneous intervals of the ranks of all methods, with the coverage of the tests.

    A method's rank is at least one more than the number of better methods. It is at most the number of methods minus
    the number of worse ones. A bootstrap of ranks is too sure about the order of close methods
    (`benchmarks/coverage/comparisons.py`).

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
        Indices of the methods of each group, sorted. Empty if there are more than `MOST_GROUPS` groups: hundreds of
        methods of different spread can have any number of them.
    """
    groups = {frozenset(range(len(differ)))}
    for first, second in np.argwhere(np.triu(differ)).tolist():
        both = {group for group in groups if first in group and second in group}
        groups -= both
        for smaller in sorted((group - {index} for group in both for index in (first, second)), key=len, reverse=True):
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

    Experiments of n orderings are sampled with replacement from the observed differences, whose mean is taken as the
    true one. The number is the smallest n for which a paired t test rejects equality in 80 % of the experiments. It is
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
    return [_first_above(column) for column in power.T]


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

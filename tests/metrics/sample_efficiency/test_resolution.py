"""Significant differences, against enumeration, brute force and the power of the t test."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics.sample_efficiency.resolution import (
    MOST,
    AllPairs,
    compare_all_pairs,
    maximal_groups,
    orderings_needed,
    rank_intervals,
)
from headstart.metrics.sample_efficiency.scores import sign_flip_p_values


def step_down(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust by definition: over all sign patterns, the largest statistic among the pairs that are not yet decided."""
    pairs = [pair for pair in combinations(range(len(values)), 2) if (values[pair[0]] != values[pair[1]]).any()]
    patterns = np.array(list(product((-1, 1), repeat=values.shape[1])))

    def statistic(pair: tuple[int, int], signs: NDArray[np.int64]) -> float:
        differences = values[pair[0]] - values[pair[1]]
        return float(abs((signs * differences).sum()) / np.sqrt((differences**2).sum()))

    observed = {pair: statistic(pair, patterns[-1]) for pair in pairs}
    adjusted, left, before = np.ones((len(values), len(values))), sorted(pairs, key=lambda pair: -observed[pair]), 0.0
    while left:
        pair = left[0]
        largest = [max(statistic(row, signs) for row in left) for signs in patterns]
        before = max(before, np.mean(np.array(largest) >= observed[pair] - 1e-9).item())
        adjusted[pair] = adjusted[pair[::-1]] = before
        left = left[1:]
    return adjusted


def compared(values: NDArray[np.float64]) -> AllPairs:
    [result] = compare_all_pairs([values])
    return result


@pytest.mark.parametrize("seed", range(5))
def test_all_pairs_as_by_definition(seed: int) -> None:
    values = np.random.default_rng(seed).integers(10, 40, (4, 6)) + 8.0 * np.arange(4)[:, None]
    assert compared(values).p_values == pytest.approx(step_down(values))


def test_patterns_are_enumerated_or_drawn_evenly() -> None:
    # Two methods of which the last ordering alone differs much, so that its sign must flip as often as not.
    for orderings in (13, 14, 16, 17, 40):
        values = np.stack([np.full(orderings, 20.0), np.full(orderings, 21.0)])
        values[1, :-1:2] = 19
        values[1, -1] = 20 + 2 * orderings
        [expected] = sign_flip_p_values((values[0] - values[1])[:, None])
        assert compared(values).p_values[0, 1] == pytest.approx(expected, abs=0.02 if orderings > 13 else 1e-9)


def exact_p_value(differences: NDArray[np.float64]) -> float:
    """Compute the two-sided p value of sign flips of whole numbers from the distribution of their sum."""
    total = int(np.abs(differences).sum())
    shares = np.zeros(2 * total + 1)
    shares[total] = 1
    for step in np.abs(differences).astype(int):
        shares = (np.roll(shares, step) + np.roll(shares, -step)) / 2
    return float(shares[np.abs(np.arange(-total, total + 1)) >= abs(differences.sum())].sum())


def near_the_level(orderings: int, cases: int, width: float) -> list[NDArray[np.float64]]:
    """Return differences of pairs whose exact p values lie around 5 %."""
    generator = np.random.default_rng(orderings)
    near: list[NDArray[np.float64]] = []
    while len(near) < cases:
        differences = np.round(generator.normal(4 / orderings**0.5, 3, orderings))
        if abs(exact_p_value(differences) - 0.05) < width:
            near.append(differences)
    return near


@pytest.mark.parametrize("orderings", [14, 16, 17, 20])
def test_up_to_twenty_orderings_decide_by_all_patterns(orderings: int) -> None:
    for differences in near_the_level(orderings, 3, 0.002):
        result = compared(np.stack([differences, np.zeros(orderings)]) + 50)
        assert result.p_values[0, 1] == pytest.approx(exact_p_value(differences), rel=1e-9)
        assert result.significant[0, 1] == (exact_p_value(differences) < 0.05)
        assert not result.undecided.any()


def test_an_undecided_pair_is_not_significant() -> None:
    [near] = near_the_level(40, 1, 0.0002)
    # The third method differs from both without a doubt.
    result = compared(np.stack([near, np.zeros(40), np.full(40, 400.0)]) + 50)
    assert result.undecided[0, 1]
    assert result.significant.tolist() == [[False, False, True], [False, False, True], [True, True, False]]


def test_equal_traces_and_a_single_ordering_are_not_significant() -> None:
    same = np.tile(np.arange(20.0), (3, 1))
    assert (compared(same).p_values == 1).all()
    assert (compared(np.array([[10.0], [500.0]])).p_values == 1).all()
    half = np.stack([same[0], same[0], same[0] + np.arange(20) + 50])
    assert compared(half).p_values[0, 1] == 1
    assert compared(half).p_values[0, 2] < 0.05


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_maximal_sets_without_a_difference(seed: int) -> None:
    methods = 7
    apart = np.triu(np.random.default_rng(seed).random((methods, methods)) < 0.4, 1)
    apart |= apart.T
    sets = [
        set(members)
        for size in range(1, methods + 1)
        for members in combinations(range(methods), size)
        if not apart[np.ix_(members, members)].any()
    ]
    maximal = sorted(sorted(clique) for clique in sets if not any(clique < other for other in sets))
    assert maximal_groups(apart) == maximal


def test_too_many_groups_are_not_named() -> None:
    # Twelve pairs, each significantly different within itself alone, make 2^12 groups.
    pairs = np.arange(24) // 2
    apart = (pairs[:, None] == pairs) & ~np.eye(24, dtype=bool)
    assert maximal_groups(apart) == []
    assert len(maximal_groups(apart[:16, :16])) == 2**8


def test_ranks_where_only_some_methods_differ_significantly() -> None:
    apart = np.zeros((4, 4), dtype=bool)
    for one, other in ((0, 2), (0, 3), (1, 3)):
        apart[one, other] = apart[other, one] = True
    assert rank_intervals(np.array([10.0, 11, 12, 20]), apart).tolist() == [[1, 2], [1, 3], [2, 4], [3, 4]]
    assert rank_intervals(np.array([20.0, 12, 11, 10]), apart).tolist() == [[3, 4], [2, 4], [1, 3], [1, 2]]


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_orderings_needed_as_by_the_noncentral_t(effect: float) -> None:
    # Samples of so many quantiles of a normal distribution are samples of the distribution.
    observed = stats.norm.ppf((np.arange(400) + 0.5) / 400) + effect

    def power(n: int) -> float:
        half = stats.t.ppf(0.975, n - 1)
        spread = stats.nct(n - 1, effect * n**0.5)
        return float(spread.sf(half) + spread.cdf(-half))

    expected = next(n for n in range(3, MOST) if power(n) >= 0.8)
    [needed] = orderings_needed(observed[:, None], np.array([0.05]))
    assert needed == pytest.approx(expected, rel=0.12)


def test_orderings_needed_of_what_does_not_differ() -> None:
    symmetric = np.array([-1.0, 1.0] * 10)
    assert orderings_needed(np.stack([np.zeros(20), symmetric, np.full(20, 5.0)], axis=1), np.full(3, 0.05)) == [
        None,
        None,
        6,
    ]
    assert orderings_needed(np.array([[3.0]]), np.array([0.05])) == [None]
    assert orderings_needed(np.zeros((20, 0)), np.zeros(0)) == []

"""Pools that are drawn: in balance, all with the same probability, and in blocks; rounding to a sum of 100."""

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.metrics.ranking import pools as module
from headstart.metrics.ranking.outcomes import round_to_100
from headstart.metrics.ranking.pools import BATCHES, Pools, choose_pools, draw_batch
from headstart.output.errors import UserError


def make_table(sources: int, targets: int = 2, metrics: int = 2) -> TransferTable:
    names = [[str(index) for index in range(count)] for count in (metrics, sources, targets)]
    return TransferTable.of_arrays(
        names[0], names[1], names[2], np.ones((metrics, sources, targets)), np.ones((sources, targets))
    )


@pytest.mark.parametrize(("sources", "size", "count"), [(10, 7, 10), (10, 7, 13), (43, 30, 25), (5, 5, 3), (9, 2, 7)])
def test_every_source_is_in_equally_many_pools(sources: int, size: int, count: int) -> None:
    pools = draw_batch(np.random.default_rng(0), sources, size, count)
    assert all(len(set(pool)) == size and list(pool) == sorted(pool) for pool in pools.tolist())
    often = np.bincount(pools.ravel(), minlength=sources)
    assert often.sum() == size * count
    assert np.ptp(often) <= (size * count % sources > 0)


def test_every_pool_is_drawn_with_the_same_probability() -> None:
    generator = np.random.default_rng(0)
    batches = [draw_batch(generator, 6, 4, 3) for _ in range(1_500)]
    for index in range(3):
        count = Counter(tuple(batch[index].tolist()) for batch in batches)
        observed = [count[pool] for pool in combinations(range(6), 4)]
        assert stats.chisquare(observed).pvalue > 0.001


@pytest.mark.parametrize("most", [3, 25, 60, 1_000])
def test_blocks_hold_all_batches_in_order(most: int) -> None:
    drawn = Pools(12, 8, drawn=BATCHES * 10 + 7, seed=3)
    blocks = list(drawn.blocks(most))
    assert all(0 < len(pools) == len(batches) <= most for pools, batches in blocks)
    pools, batches = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    whole = next(drawn.blocks(10**6))
    np.testing.assert_array_equal(pools, whole[0])
    np.testing.assert_array_equal(np.bincount(batches), [11] * 7 + [10] * (BATCHES - 7))
    assert np.all(np.diff(batches) >= 0)
    other = next(Pools(12, 8, drawn.drawn, seed=4).blocks(10**6))[0]
    assert not np.array_equal(pools, other)


def test_pools_are_drawn_where_there_are_more_than_asked_for() -> None:
    table = make_table(12)
    assert choose_pools(table.scores, 8, None, 5) == choose_pools(table.scores, 8, comb(12, 8), 5) == Pools(12, 8)
    assert choose_pools(table.scores, 8, comb(12, 8) - 1, 5) == Pools(12, 8, comb(12, 8) - 1, 5)
    with pytest.raises(UserError, match=f"pools: 5 is given; {BATCHES} or more are needed"):
        choose_pools(table.scores, 8, 5, 0)
    large = choose_pools(make_table(500, 100).scores, 350, None, 0)
    assert (large.count, choose_pools(make_table(80, 7).scores, 56, None, 0).count) == (module.FEWER, module.DRAWN)
    assert str(large) == "1,000 pools drawn at random of about 10^131"
    assert large.all_in_json == "about 10^131"
    assert Pools(12, 8).all_in_json == comb(12, 8)
    assert str(Pools(5_000, 2_500, 100)) == "100 pools drawn at random of about 10^1503"


# Each rounded by itself, the first three would give 99, 102 and 101.
ROUNDED = [
    ([33.4, 33.3, 33.3], [34, 33, 33]),
    ([0.5, 0.6, 0.7, 98.2], [0, 1, 1, 98]),
    ([0.64, 73.63, 16.72, 2.7, 6.31], [1, 73, 17, 3, 6]),
    ([100.0, 0.0], [100, 0]),
    ([100 * 0.29, 100 * 0.57, 100 * 0.14], [29, 57, 14]),
]


def test_largest_remainders_add_up_to_100_and_move_nothing_by_one() -> None:
    assert [round_to_100(exact) for exact, _ in ROUNDED] == [rounded for _, rounded in ROUNDED]
    for exact in 100 * np.random.default_rng(0).dirichlet(np.ones(5), size=200):
        rounded = round_to_100(exact)
        assert sum(rounded) == 100
        assert np.abs(rounded - exact).max() < 1

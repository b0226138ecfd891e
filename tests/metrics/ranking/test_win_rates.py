"""Rounding to a sum of 100."""

import numpy as np

from headstart.metrics.ranking.outcomes import round_to_100

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

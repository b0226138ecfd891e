"""What tables say of means over targets."""

import numpy as np
import pytest

from headstart.evaluation.estimates import by_measure, over_targets, with_interval


def test_targets_without_a_value_do_not_count() -> None:
    targets = [f"t{index}" for index in range(9)]
    values = np.array([0.5, 0.6, 0.7, 0.4, 0.3, *[np.nan] * 4])
    summary = over_targets(values, targets, (-1, 1), tested=True)
    assert (summary["mean"], summary["ci95"]) == (pytest.approx(0.5), [None, None])
    assert summary["p_value"] == 2 / 2**5
    assert with_interval(summary) == "0.500"


def test_intervals_end_at_the_bounds_of_values_and_differences() -> None:
    values = np.random.default_rng(0).choice([0.0, 1.0], (9, 4), p=[0.1, 0.9])
    ends = {name: its["ci95"] for name, its in by_measure(values, list("abcdefghi")).items()}
    assert {high for _, high in ends.values()} == {1}
    differences = by_measure(2 * values, list("abcdefghi"), differences=True)
    assert differences["kendall"]["ci95"][1] == 2
    assert by_measure(-values, list("abcdefghi"), differences=True)["rel_at_1"]["ci95"][0] == -1

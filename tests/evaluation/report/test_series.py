"""The numbers of the charts, against loops over the traces."""

import csv
from typing import Any

import numpy as np

from headstart.evaluation.report.series import POINTS, intervals, learning_curves, reached, thin
from headstart.output.page.layout import Series
from headstart.tests.material.runs import TRACES, curves_of, reaching


def rows(series: Series) -> list[dict[str, float]]:
    return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(series.data.splitlines())]


def test_means_and_percentiles_of_every_evaluation() -> None:
    result = rows(learning_curves(curves_of(TRACES), {"baseline": 1, "mine": 0}))
    assert [row["samples"] for row in result] == [*range(1, 9)] * 2
    assert [row["method"] for row in result] == [1] * 8 + [0] * 8
    assert [row["mean"] for row in result[:8]] == [50, 70, 80, 80, 82.5, 82.5, 85, 87.5]
    # The tenth percentile of two values a and b is a + (b - a) / 10.
    assert (result[1]["low"], result[1]["high"]) == (62, 78)


def test_intervals_that_are_not_bounded_are_not_drawn() -> None:
    methods: list[dict[str, Any]] = [
        {"name": "a", "x": 1.5, "x_interval": [1.0, 2.0]},
        {"name": "b", "x": None, "x_interval": None},
        {"name": "c", "x": 3.0, "x_interval": [None, None]},
    ]
    result = intervals(methods, "x", {"a": 0, "b": 1, "c": 2})
    assert result.data == "method,estimate,low,high\n0,1.5,1,2\n2,3,3,3"


def test_thinned_places_hold_both_ends() -> None:
    for count in (1, 2, POINTS, POINTS + 1, 500, 100_000):
        indices = thin(count)
        assert (indices[0], indices[-1]) == (0, count - 1)
        assert len(indices) <= POINTS
        assert (np.diff(indices) > 0).all()


def test_shares_are_those_of_a_count_at_every_number_of_samples() -> None:
    samples = [[12, 14, 14, np.inf], [20, 25, 30, 31]]
    curves = reaching(["baseline", "mine"], samples, 40)
    result = rows(reached(curves, {"baseline": 0, "mine": 1}))
    for method, ends in enumerate(samples):
        steps = [(row["samples"], row["share"]) for row in result if row["method"] == method]
        for seen in range(1, 41):
            share = max(at for at in steps if at[0] <= seen)[1]
            assert share == 100 * np.mean(np.array(ends) <= seen)
        assert steps[-1][0] == 40

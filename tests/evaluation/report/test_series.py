"""The numbers of the charts, against loops over the traces."""

import csv
from dataclasses import replace
from typing import Any

import numpy as np

from headstart.evaluation.report.series import POINTS, intervals, learning_curves, reached, stabilities, thin
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED
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


def test_the_part_that_moves_the_ranking_most_comes_first() -> None:
    parts: list[dict[str, Any]] = [
        {"part": "threshold", "stability": 0.7, "interval": [0.5, 0.9]},
        {"part": "batch size", "stability": None, "interval": None},
        {"part": "data set", "stability": 0.4, "interval": None},
    ]
    result = stabilities(parts)
    assert result.values == {"labels": ["data set", "threshold"]}
    assert result.data == "part,estimate,low,high\n0,0.4,0.4,0.4\n1,0.7,0.5,0.9"


def test_a_curve_ends_with_its_shortest_ordering() -> None:
    traces = TRACES.copy()
    traces[1, 0, 5:] = NOT_EVALUATED
    result = rows(learning_curves(curves_of(traces), {"baseline": 0, "mine": 1}))
    assert [sum(row["method"] == method for row in result) for method in (0, 1)] == [8, 5]


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


def test_no_share_is_counted_behind_the_limit() -> None:
    result = rows(reached(replace(reaching(["baseline"], [[12, 50]], 60), limit=40), {"baseline": 0}))
    assert (result[-1]["samples"], result[-1]["share"]) == (40, 50)

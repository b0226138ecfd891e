"""The pools in which rankers beat the mean rank are those of a loop over all pools."""

from itertools import combinations

import numpy as np
import pytest

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.helpful_pools import HelpfulPools, helpful_csv, helpful_tables
from headstart.evaluation.stability.study import run_study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import weighted_kendall

SIZE, TARGETS = 4, ["t0", "t1", "t2"]


def drawn_table() -> TransferTable:
    """Return the mean rank, of whole numbers, and two other rankers on eight sources, one of which has a hole."""
    generator = np.random.default_rng(0)
    performances = generator.uniform(size=(8, 3))
    scores = performances + 0.5 * generator.normal(size=(3, 8, 3))
    scores[0] = scores[0].round(0)
    table = TransferTable.complete(["mean_rank", "x", "y"], list("abcdefgh"), TARGETS, scores, performances)
    table.known[5, 1] = False
    return table


def loop(table: TransferTable, target: int, ranker: int) -> tuple[Floats, Floats, Floats]:
    """Return for each pool whether a ranker beats the mean rank, how well that does, and the spread."""
    rows = []
    for pool in combinations(range(8), SIZE):
        known = [source for source in pool if table.known[source, target]]
        performances = table.performances[known, target]
        static, other = (weighted_kendall(table.scores[r, known, target], performances) for r in (0, ranker))
        if np.isfinite(static):
            rows.append((0.5 if abs(other - static) <= 1e-12 else float(other > static), static, performances.std()))
    better, static, spread = np.array(rows).T
    return better, static, spread


def thirds_of(values: Floats, low: float, high: float) -> Floats:
    """Return the third of each value, all of a thousandth of the range in that of the middle one of them."""
    bins = np.minimum(np.floor((values - low) / (high - low) * 1000), 999)
    middle = np.array([(bins < each).sum() + (bins == each).sum() / 2 for each in bins])
    return np.minimum(np.floor(3 * middle / len(bins)), 2)


def test_shares_are_those_of_a_loop_over_pools() -> None:
    table = drawn_table()
    helpful = HelpfulPools(table)
    run_study(table, Pools(8, SIZE), each_block=helpful.add)
    document = helpful.describe()
    assert set(document["rankers"]) == {"x", "y"}

    for index, target in enumerate(TARGETS):
        widest = np.ptp(table.performances[table.known[:, index], index]) / 2
        for ranker, name in enumerate("xy", start=1):
            better, static, spread = loop(table, index, ranker)
            shares = document["rankers"][name]
            assert shares["all"]["per_target"][target] == pytest.approx(better.mean())
            for kind, thirds in (("mean_rank", thirds_of(static, -1, 1)), ("spread", thirds_of(spread, 0, widest))):
                for third in range(3):
                    value = shares[kind][third]["per_target"][target]
                    assert value == pytest.approx(better[thirds == third].mean())

    means = [np.mean([spread[third == part].mean() for spread, third in spreads(table)]) for part in range(3)]
    assert document["thirds"]["spread"] == pytest.approx(means)
    assert means == sorted(means)


def spreads(table: TransferTable) -> list[tuple[Floats, Floats]]:
    """Return the spreads of the pools of each target, and their thirds."""
    ranges = [np.ptp(table.performances[table.known[:, index], index]) / 2 for index in range(3)]
    values = [loop(table, index, 1)[2] for index in range(3)]
    return [(spread, thirds_of(spread, 0, widest)) for spread, widest in zip(values, ranges, strict=True)]


def test_pools_that_all_look_alike_are_the_middle_third() -> None:
    performances = np.tile(np.arange(5.0)[:, None], (1, 2))
    scores = np.stack([performances, -performances, performances])
    table = TransferTable.complete(["mean_rank", "bad", "same"], list("abcde"), ["t", "u"], scores, performances)
    helpful = HelpfulPools(table)
    run_study(table, Pools(5, 3), each_block=helpful.add)
    document = helpful.describe()
    assert document["thirds"]["mean_rank"] == [None, 1, None]
    assert [each["mean"] for each in document["rankers"]["bad"]["mean_rank"]] == [None, 0, None]
    assert document["rankers"]["same"]["all"]["mean"] == 0.5


def test_tables_and_csv_have_the_shares() -> None:
    table = drawn_table()
    helpful = HelpfulPools(table)
    run_study(table, Pools(8, SIZE), each_block=helpful.add)
    document = helpful.describe()
    columns, rows = helpful_csv(document)
    assert columns == ["ranker", "thirds_by", "third", "target", "better_than_mean_rank"]
    assert len(rows) == 2 * 7 * 3
    assert ["x", "all", None, "t1", document["rankers"]["x"]["all"]["per_target"]["t1"]] in rows
    assert ["y", "spread", 3, "t0", document["rankers"]["y"]["spread"][2]["per_target"]["t0"]] in rows
    first, second = helpful_tables(document, {"x": "X", "y": "Y"}, "mean over targets")
    assert [row[0] for row in first[2]] == ["ranker", "X", "Y"]
    assert first[2][1][1] == second[2][1][1]
    assert first[2][1][1] == f"{document['rankers']['x']['all']['mean']:.3f}", "three targets have no interval"
    assert "badly by chance" in first[1]
    assert "badly by chance" not in second[1]

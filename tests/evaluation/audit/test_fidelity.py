"""The share of pairs that rankers order rightly is that of a loop over the pairs."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit import fidelity as module
from headstart.evaluation.audit.fidelity import describe_fidelity, fidelity_csv, fidelity_tables, measure_fidelity
from headstart.metrics.arrays import Floats

SOURCES, TARGETS = ["a", "b", "c", "d", "e", "f", "g"], ["t0", "t1", "t2"]


def drawn_table() -> tuple[TransferTable, Floats]:
    """Return performances with ties and a hole, and scores of three rankers with ties."""
    generator = np.random.default_rng(0)
    performances = generator.integers(0, 12, (7, 3)) / 8.0
    scores = (performances + generator.normal(size=(3, 7, 3))).round(1)
    scores[2, :, 1] = 4.0
    table = TransferTable.complete(["x", "y", "z"], SOURCES, TARGETS, scores, performances)
    table.known[3, 2] = False
    return table, scores


def loop(table: TransferTable, scores: Floats, target: int, by_score: bool) -> list[float]:
    """Return the share of each fifth of the pairs of a target, those up to each fifth of the sorted differences."""
    known = np.flatnonzero(table.known[:, target])
    differences, rights = [], []
    for one, other in combinations(known, 2):
        performance = table.performances[one, target] - table.performances[other, target]
        score = scores[one, target] - scores[other, target]
        if performance:
            differences.append(abs(score if by_score else performance))
            rights.append(0.5 if score == 0 else float((score > 0) == (performance > 0)))
    bounds = [-1.0, *np.quantile(differences, [0.2, 0.4, 0.6, 0.8, 1])]
    fifths = [
        [right for right, difference in zip(rights, differences, strict=True) if low < difference <= high]
        for low, high in pairwise(bounds)
    ]
    return [float(np.mean(each)) if each else np.nan for each in fifths]


def test_shares_are_those_of_a_loop_over_pairs() -> None:
    table, scores = drawn_table()
    result = measure_fidelity(table, scores)
    for ranker, target in np.ndindex(3, 3):
        for by_score, shares in ((False, result.by_performance), (True, result.by_score)):
            expected = loop(table, scores[ranker], target, by_score)
            # A ranker with the same score for all has no part.
            if (ranker, target) == (2, 1):
                expected = [np.nan] * 5
            np.testing.assert_allclose(shares[ranker, target], expected, atol=1e-12)
    assert result.pairs == [
        sum(one != other for one, other in combinations(column[known], 2))
        for column, known in zip(table.performances.T, table.known.T, strict=True)
    ]


def test_pairs_of_many_sources_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    performances = generator.normal(size=(300, 1))
    scores = performances[None] + generator.normal(size=(1, 300, 1))
    table = TransferTable.complete(["x"], [str(i) for i in range(300)], ["t"], scores, performances)
    exact = measure_fidelity(table, scores)
    monkeypatch.setattr(module, "MOST_PAIRS", 20_000)
    drawn = measure_fidelity(table, scores)
    assert (exact.pairs, drawn.pairs) == ([300 * 299 // 2], [20_000])
    # The standard error of a share of 4,000 pairs is 0.008 at most.
    np.testing.assert_allclose(drawn.by_score, exact.by_score, atol=0.04)
    [_, (_, caption, _)] = fidelity_tables(describe_fidelity(drawn, ["x"], ["t"]), {"x": "X"}, "mean")
    assert caption.endswith("20,000 random pairs of a target")


def test_documents_and_tables_have_the_shares() -> None:
    table, scores = drawn_table()
    result = measure_fidelity(table, scores)
    document = describe_fidelity(result, ["x", "y", "z"], TARGETS)
    columns, rows = fidelity_csv(document)
    assert columns == ["ranker", "difference_in", "fifth", "target", "ordered_rightly"]
    assert len(rows) == 2 * 3 * 5 * 3
    for name, kind, fifth, target, share in rows:
        shares = result.by_performance if kind == "performance" else result.by_score
        expected = shares["xyz".index(name), TARGETS.index(target), fifth - 1]
        assert share == (None if np.isnan(expected) else expected)
    expected = np.nanmean(result.by_score[0, :, 0])
    assert document["by_score_difference"]["x"][0]["mean"] == pytest.approx(expected)
    first, second = fidelity_tables(document, {"x": "X", "y": "Y", "z": "Z"}, "mean")
    bound = np.mean([np.quantile(np.abs(gaps[gaps != 0]), 0.2) for gaps in map(gaps_of, range(3), [table] * 3)])
    assert first[2][0][1] == f"closest fifth, up to {bound:.3g}"
    assert second[2][1][1].startswith(f"{expected:.3f}")


def gaps_of(target: int, table: TransferTable) -> Floats:
    performances = table.performances[table.known[:, target], target]
    return np.array([one - other for one, other in combinations(performances, 2)])

"""All experiments of small studies, one by one with SciPy, and all pairs of them."""

import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability import study as studies
from headstart.evaluation.stability.study import run_study
from headstart.metrics.ranking.outcomes import Wins, agreement_vectors
from headstart.metrics.ranking.pools import Pools
from headstart.tests.material import score_tables

TOLERANCE = 1e-12

Outcomes = dict[tuple[tuple[int, ...], int, int], list[float]]
MEASURE: list[Callable[[NDArray[Any], NDArray[Any]], float]] = [
    lambda x, y: float(stats.weightedtau(x, y).statistic),
    lambda x, y: float(stats.kendalltau(x, y).statistic),
    lambda x, y: float(stats.pearsonr(x, y).statistic),
    lambda x, y: float(y[np.argmax(x)] / np.max(y)),
]


def make_table(seed: int, distinct: int | None, sources: int = 6, metrics: int = 4) -> TransferTable:
    """Draw a table of which the first two sources are targets, too; few distinct values give ties and constants."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(metrics, sources, 3))
    performances = generator.uniform(0.1, 1, (sources, 3))
    if distinct is not None:
        scores = generator.integers(distinct, size=scores.shape).astype(float)
        performances = 1 + generator.integers(distinct, size=performances.shape).astype(float)
    own = np.arange(sources)[:, None] == [0, 1, -1]
    return score_tables.make_table(scores, performances, own)


def one_by_one(table: TransferTable, size: int) -> Outcomes:
    outcomes: Outcomes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pool in combinations(range(len(table.sources)), size):
            for target, own in enumerate(table.own.T):
                if not own[list(pool)].any():
                    at = list(pool), target
                    for measure, function in enumerate(MEASURE):
                        outcome = [function(scores[at], table.performances[at]) for scores in table.scores]
                        outcomes[pool, target, measure] = outcome
    return outcomes


def agreement(first: list[float], second: list[float]) -> float:
    """Kendall's tau-b of two outcomes by SciPy, with differences up to the tolerance rounded away."""
    if np.isnan(first).any() or np.isnan(second).any():
        return float("nan")
    return float(stats.kendalltau(np.round(first, 10), np.round(second, 10)).statistic)


def stability(outcomes: Outcomes, component: int) -> tuple[float, int]:
    """Compare all pairs that differ in one component; give the mean over groups of means over pairs, and the pairs."""
    groups = defaultdict(list)
    for experiment, outcome in outcomes.items():
        groups[experiment[:component] + experiment[component + 1 :]].append(outcome)
    means, pairs = [], 0
    for members in groups.values():
        values = [value for a, b in combinations(members, 2) if not isnan(value := agreement(a, b))]
        pairs += len(values)
        if values:
            means.append(float(np.mean(values)))
    return float(np.mean(means)), pairs


def test_a_study_equals_all_experiments_and_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "BLOCK", 10)
    for seed, distinct in ((0, None), (2, 3), (3, 2)):
        table = make_table(seed, distinct)
        expected = one_by_one(table, 4)
        result = run_study(table, Pools(6, 4))
        without = result.setup_stability_without()

        assert result.experiments == len(expected)
        for component, name in enumerate(["pool", "target", "measure"]):
            agreements = result.setup_stability[name]
            assert (agreements.mean, agreements.pairs) == pytest.approx(stability(expected, component), abs=1e-12)
            for left_out in range(3):
                remaining = {key: outcome for key, outcome in expected.items() if key[1] != left_out}
                assert without[name][left_out] == pytest.approx(stability(remaining, component)[0], abs=1e-12)
        ranked = sum(not isnan(agreement(outcome, outcome)) for outcome in expected.values())
        assert result.undefined == len(expected) - ranked
        assert result.undefined > 0, "by Rel@1 all metrics tie on some pools even where no values do"
        require_same_wins(result.wins, expected)


def require_same_wins(wins: Wins, outcomes: Outcomes) -> None:
    """Require that wins are those of a loop over the experiments, and win rates those without each target."""
    split, last = np.zeros((3, 4, 4)), np.zeros((3, 4, 4))
    decided, tied = np.zeros((2, 3, 4), dtype=int)
    for (_, target, measure), outcome in outcomes.items():
        known = [value for value in outcome if not isnan(value)]
        winners = [metric for metric, value in enumerate(outcome) if known and value >= max(known) - TOLERANCE]
        for metric in winners:
            split[target, measure, metric] += 1 / len(winners)
        if winners:
            last[target, measure, winners[-1]] += 1
            decided[target, measure] += 1
            tied[target, measure] += len(winners) > 1
    np.testing.assert_allclose(wins.split[0], split, rtol=1e-12)
    for actual, expected in ((wins.last, last), (wins.decided, decided), (wins.tied, tied)):
        np.testing.assert_array_equal(actual[0], expected)

    for kind, counted in (("split", split), ("last", last)):
        for left_out in range(3):
            remaining = [target for target in range(3) if target != left_out]
            expected = 100 * counted[remaining].sum(axis=0) / decided[remaining].sum(axis=0)[:, None]
            rates = wins.percent_without_each(kind, "target")[left_out]  # type: ignore[arg-type]  # of the two literals
            np.testing.assert_allclose(rates[:, :4], expected.T)
            np.testing.assert_allclose(rates[:, 4], expected.mean(axis=0))


def test_agreement_is_tau_b_and_rounding_makes_no_order() -> None:
    generator = np.random.default_rng(0)
    outcomes = generator.integers(4, size=(30, 5)) / 3
    noisy = outcomes + 1e-14 * generator.normal(size=outcomes.shape)
    vectors, defined = agreement_vectors(noisy, TOLERANCE)
    assert defined.all()
    for i, j in combinations(range(30), 2):
        assert vectors[i] @ vectors[j] == pytest.approx(stats.kendalltau(outcomes[i], outcomes[j]).statistic, abs=1e-12)


def test_a_single_pool_or_target_leaves_its_component_undefined() -> None:
    table = make_table(0, None)
    result = run_study(table, Pools(6, 6))
    assert result.setup_stability["pool"].mean is None
    assert result.setup_stability["target"].mean is None, "only one target has a pool of all sources"
    assert result.setup_stability["measure"].mean is not None
    assert result.experiments == 4
    without = result.setup_stability_without()
    assert np.isnan([*without["pool"], *without["target"]]).all()
    assert np.isfinite(without["measure"]).tolist() == [True, True, False], "the third target has the only pool"

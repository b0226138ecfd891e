"""Studies of drawn pools against those of all pools: estimates, their standard errors, and what is written."""

from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.study import (
    COMPONENTS,
    pool_outcomes,
    run_study,
    setup_stability_errors,
    win_rate_errors,
)
from headstart.metrics.ranking.outcomes import agreement_vectors
from headstart.metrics.ranking.pools import BATCHES, Pools
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.score_tables import make_table, run_stability, write_table

SOURCES, TARGETS, METRICS = 15, 4, 3


@pytest.fixture(scope="module")
def table() -> TransferTable:
    """Build a table whose metrics are right by half; the first source is a target, too."""
    generator = np.random.default_rng(2)
    performances = generator.uniform(0.2, 1, (SOURCES, TARGETS))
    scores = performances + 0.5 * generator.normal(size=(METRICS, SOURCES, TARGETS))
    own = np.zeros((SOURCES, TARGETS), dtype=np.bool_)
    own[0, 0] = True
    return make_table(scores, performances, own)


@pytest.mark.slow
def test_estimates_are_unbiased_and_their_errors_are_those_of_many_seeds(table: TransferTable) -> None:
    exact = run_study(table, Pools(SOURCES, 10))
    truth = np.array([exact.setup_stability[name].mean for name in COMPONENTS])
    seeds, z_scores, z_wins = 150, [], []
    for seed in range(seeds):
        study = run_study(table, Pools(SOURCES, 10, drawn=120, seed=seed))
        errors = setup_stability_errors(study)
        estimates = np.array([study.setup_stability[name].mean for name in COMPONENTS])
        z_scores.append((estimates - truth) / [errors[name] for name in COMPONENTS])
        wins = study.wins.percent("split") - exact.wins.percent("split")
        z_wins.append((wins / win_rate_errors(study, "split")).ravel())

    # Variances of t-distributed values with one degree of freedom less than batches, and four of their deviations.
    expected, spread = (BATCHES - 1) / (BATCHES - 3), 4 * (2.2 / seeds) ** 0.5
    for z in (np.array(z_scores), np.array(z_wins)):
        assert np.all(np.abs(z.mean(axis=0)) < 4 / seeds**0.5)
        assert np.all(np.abs(z.var(axis=0) - expected) < spread)


def test_agreement_over_pools_is_that_of_pairs_from_different_batches(table: TransferTable) -> None:
    pools = Pools(SOURCES, 10, drawn=BATCHES + 30, seed=2)
    study = run_study(table, pools)
    drawn, batches = (np.concatenate(parts) for parts in zip(*pools.blocks(1_000), strict=True))
    vectors, defined = agreement_vectors(pool_outcomes(table, drawn)[0], 1e-12)
    pairs = [(i, j) for i, j in combinations(range(len(drawn)), 2) if batches[i] != batches[j]]
    means, compared = [], 0
    for t, e in np.ndindex(defined.shape[1:]):
        values = [float(vectors[i, t, e] @ vectors[j, t, e]) for i, j in pairs if defined[i, t, e] and defined[j, t, e]]
        compared += len(values)
        # A pool that is drawn twice agrees with itself; of all pools with an outcome, that is one in as many pairs.
        others = comb(SOURCES, 10) * defined[:, t, e].mean() - 1
        means.append(np.mean(values) - (1 - np.mean(values)) / others)
    agreement = study.setup_stability["pool"]
    assert (agreement.groups.sum(), agreement.pairs) == (len(means), compared)
    assert agreement.mean == pytest.approx(np.mean(means), abs=1e-12)
    assert study.experiments == 4 * int((~np.isnan(pool_outcomes(table, drawn)[0][:, :, 1, 0])).sum())


def test_what_is_written_says_whether_pools_are_drawn(
    table: TransferTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = write_table(tmp_path / "table.csv", table), tmp_path / "drawn"
    document = run_stability(file, output, "--pool_size=10", "--pools=80")
    printed = " ".join(capsys.readouterr().out.split())
    assert "Estimates from 80 pools drawn at random of 3,003 (seed 0)." in printed
    assert (document["drawn_pools"], document["all_pools"], document["seed"]) == (80, comb(SOURCES, 10), 0)
    assert document["experiments"] == 80 * TARGETS * 4
    errors = document["standard_error"]
    for name in document["setup_stability"]:
        assert 0 < errors["setup_stability"][name] < 0.1
        assert f" ± {errors['setup_stability'][name]:.4f}" in printed
    assert errors["win_rate_percent_ties_split"]["m0"]["average"] > 0
    assert 0 < document["moves_most"]["standard_error"] < 0.1
    for name in ("setup_stability", "win_rates"):
        frame = pd.read_csv(output / f"{name}.csv")
        assert ((frame["all_pools"] == 3003) & (frame["drawn_pools"] == 80) & (frame["standard_error"] >= 0)).all()
    other = run_stability(file, tmp_path / "other", "--pool_size=10", "--pools=80", "--seed=6")
    assert other["setup_stability"] != document["setup_stability"]

    # All pools have no standard error. Another seed is then no other configuration; a number of pools is one.
    capsys.readouterr()
    whole = run_stability(file, tmp_path / "all", "--pool_size=10", "--pools=3003", "--seed=9")
    assert (whole["drawn_pools"], whole["seed"], whole["standard_error"]) == (None, None, None)
    assert "±" not in capsys.readouterr().out
    run_stability(file, tmp_path / "all", "--pool_size=10", "--seed=1")
    line = error_line(capsys, partial(run_stability, file, tmp_path / "all", "--pool_size=10", "--pools=60"), code=1)
    assert "drawn_pools" in line

"""The intervals of an audit: of rankers, at the bounds of measures, and of the mean rank."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headstart.tests.material.audits import run
from headstart.tests.material.root import require_checkout


@pytest.mark.usefixtures("without_figures")
def test_intervals_are_over_targets(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    lines = ["source,target,performance"]
    lines += [f"s{i},t{j},{i + 3 * generator.normal()}" for i in range(6) for j in range(9)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    facts = "source,parameters\n" + "\n".join(f"s{i},{i}" for i in range(6))
    (tmp_path / "facts.csv").write_text(facts)
    rankers = run(tmp_path / "table.csv", tmp_path / "out", f"--facts={tmp_path / 'facts.csv'}")["rankers"]
    values = list(rankers["parameters"]["kendall"]["per_target"].values())
    expected = stats.t.interval(0.95, 8, np.mean(values), stats.sem(values))
    assert rankers["parameters"]["kendall"]["ci95"] == pytest.approx(expected, abs=1e-12)
    # The mean rank is estimated from the same targets.
    its = rankers["mean_rank"]["kendall"]
    low, high = its["ci95"]
    assert high - low > np.ptp(stats.t.interval(0.95, 8, its["mean"], stats.sem(list(its["per_target"].values()))))
    # Performances below 0 have no Rel@1.
    assert None in rankers["mean_rank"]["rel_at_1"]["per_target"].values()


@pytest.mark.usefixtures("without_figures")
def test_intervals_end_at_the_bounds_of_what_they_are_of(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    performances = np.linspace(0.2, 0.8, 6)[:, None] + 0.05 * generator.normal(size=(6, 8))
    scores = performances + 0.1 * generator.normal(size=(6, 8))
    lines = [f"own,s{i},t{j},{scores[i, j]},{value}" for (i, j), value in np.ndenumerate(performances)]
    (tmp_path / "table.csv").write_text("\n".join(["metric,source,target,score,performance", *lines]))
    document = run(tmp_path / "table.csv", tmp_path / "out")
    ends = {name: its["ci95"] for name, its in document["rankers"]["own"].items()}
    assert ends["rel_at_1"][1] == 1, "the t interval goes beyond"
    assert all(-1 <= low < high <= 1 for low, high in ends.values())


@pytest.mark.slow
def test_intervals_of_the_mean_rank_hold_where_those_over_targets_do_not() -> None:
    """They are to hold in 95 of 100; 22 or fewer of 30 tables have a probability of less than 1 in 10⁴ then."""
    require_checkout()
    from headstart.benchmarks.coverage.targets import mean_rank_held

    shares = mean_rank_held(9, "weak", populations=1, tables=30)
    assert shares["bootstrap: held"] > 22 / 30
    assert shares["bootstrap: width"] > 1.3 * shares["over targets: width"]

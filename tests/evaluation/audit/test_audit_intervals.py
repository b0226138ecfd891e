"""The intervals of an audit: of rankers, at the bounds of measures, and of the mean rank."""

from pathlib import Path

import numpy as np
import pytest

from headstart.tests.material.audits import run
from headstart.tests.material.root import require_checkout


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

"""`headstart stability` on tables whose answers follow without computation."""

from functools import partial
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headstart.tests.material.mistakes import error_line
from headstart.tests.material.score_tables import PERFORMANCES, SCORES, make_table, number, scaled_table, write_table
from headstart.tests.material.score_tables import run_stability as run

SOURCES = len(PERFORMANCES)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", scaled_table(number("t", 4), SCORES))


def test_ties_split_or_go_to_the_last(table: Path, tmp_path: Path) -> None:
    split = run(table, tmp_path / "split", "--pool_size=4")
    last = run(table, tmp_path / "last", "--pool_size=4", "--ties=last")
    assert split["metrics"] == ["gbc", "leep", "h_score", "right"]
    assert split["win_rate_percent"] == split["win_rate_percent_ties_split"]
    assert last["win_rate_percent"] == last["win_rate_percent_ties_last"] == split["win_rate_percent_ties_last"]
    assert last["win_rate_percent"]["right"]["kendall"] == pytest.approx(100), "it is the last, and never worse"
    # Three metrics choose source 4 or 5 from all pools but one; from that one `leep` takes source 0.
    assert split["win_rate_percent"]["right"]["rel_at_1"] == pytest.approx((14 * 100 / 3 + 100 / 2) / 15)
    assert split["tied_winners_percent"]["rel_at_1"] == pytest.approx(100)
    assert split["setup_stability"]["target"] == pytest.approx(1, abs=1e-12), "all targets agree"


def test_leaving_one_target_out_gives_the_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One metric wins on target t0, the other on t1 and t2: of two that are left, it wins 1 in 2 or none."""
    signs = np.array([[1, -1, -1], [-1, 1, 1]])[:, None, :] * np.arange(4.0)[:, None]
    performances = np.repeat(0.1 + 0.2 * np.arange(4)[:, None], 3, axis=1)
    write_table(tmp_path / "table.csv", make_table(signs, performances, metrics=["first", "second"]))
    document = run(tmp_path / "table.csv", tmp_path / "out", "--pool_size=3")
    assert document["win_rate_percent"]["first"]["average"] == pytest.approx(100 / 3)
    left_out = document["leave_one_target_out"]["win_rate_percent_ties_split"]
    assert left_out["first"]["kendall"] == [0, 50]
    assert left_out["second"]["average"] == [50, 100]
    printed = capsys.readouterr().out
    # Two of three pairs of targets contradict each other.
    assert document["setup_stability"] == pytest.approx({"target": -1 / 3, "measure": 1, "pool": 1})
    assert document["leave_one_target_out"]["setup_stability"]["target"] == pytest.approx([-1, 1])
    assert (document["moves_most"]["component"], document["moves_most"]["next"]) == ("target", "measure")
    assert document["setup_stability_ci95"]["pool"] == [None, None], "three targets"
    assert "3 targets have no intervals of 95 % and no significant differences at 5 %" in printed
    assert "The target changes the outcome most. Two experiments" in printed
    row = pd.read_csv(tmp_path / "out" / "setup_stability.csv", index_col="varying").loc["target"]
    assert (row["lowest_without_a_target"], row["highest_without_a_target"]) == pytest.approx((-1, 1))
    assert row[["ci95_low", "ci95_high"]].isna().all()


def test_a_target_is_never_its_own_source(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", scaled_table(number("s", SOURCES), SCORES))
    document = run(table, tmp_path / "out")
    assert document["pool_size"] == 4, "70 % of five, rounded"
    assert document["experiments"] == comb(SOURCES, 4) * (SOURCES - 4) * 4
    with_own = run(table, tmp_path / "kept", "--exclude_target=false", "--pool_size=4")
    assert with_own["experiments"] == comb(SOURCES, 4) * SOURCES * 4


def test_undefined_outcomes_are_null_and_not_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, performances = np.arange(12.0).reshape(2, SOURCES, 1), np.full((SOURCES, 1), 0.5)
    write_table(tmp_path / "table.csv", make_table(scores, performances, metrics=["first", "second"]))
    document = run(tmp_path / "table.csv", tmp_path / "out", "--pool_size=4")
    assert document["setup_stability"] == {"target": None, "measure": None, "pool": None}
    assert document["undefined_experiments"] == document["experiments"]
    rates = document["win_rate_percent"]["first"]
    assert rates == {"weighted_kendall": None, "kendall": None, "pearson": None, "rel_at_1": 50, "average": 50}
    printed = capsys.readouterr().out
    assert "Experiments with several winners: 100.0 % Rel@1." in printed
    assert "nan" not in printed


def test_tables_are_written(table: Path, tmp_path: Path) -> None:
    document = run(table, tmp_path / "out", "--pool_size=4")
    rates = pd.read_csv(tmp_path / "out" / "win_rates.csv")
    assert len(rates) == 2 * 5 * len(SCORES)
    for row in rates.to_dict("records"):
        assert row["percent"] == document[f"win_rate_percent_ties_{row['ties']}"][row["metric"]][row["measure"]]
    agreements = pd.read_csv(tmp_path / "out" / "setup_stability.csv", index_col="varying")
    assert agreements["setup_stability"].to_dict() == document["setup_stability"]


def test_metrics_with_the_same_scores_share_their_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = dict.fromkeys(("gbc", "GBC+", "gbc_é"), PERFORMANCES)
    run(write_table(tmp_path / "table.csv", scaled_table(["t0", "t1"], same)), tmp_path / "out", "--pool_size=4")
    assert capsys.readouterr().out.count("33.3 [33.3, 33.3]") == 3 * 5


def test_a_study_of_another_table_is_not_replaced_unasked(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(table, tmp_path / "out", "--pool_size=4")
    assert run(table, tmp_path / "out", "--pool_size=4")["setup_stability"] == first["setup_stability"]
    other = write_table(tmp_path / "other.csv", scaled_table(["t0", "t1"], SCORES))
    for studied, options, key in (
        (other, ["--pool_size=4"], "table/sha256"),
        (table, ["--pool_size=3", "--metrics=[gbc, right]"], "pool_size, metrics"),
    ):
        line = error_line(capsys, partial(run, studied, tmp_path / "out", *options), 1)
        assert f"holds results of another configuration ({key}); " in line
    assert run(other, tmp_path / "out", "--pool_size=4", "--overwrite=true")["targets"] == ["t0", "t1"]


MISTAKES = [
    (["--pool_size=7"], "pool_size: 7 is given; 2 to 6 is allowed"),
    (["--pool_size=3", "--pools=5"], "pools: 5 is given; 40 or more are needed"),
    (["--preset=scenario1"], "pool_size: 11 is given; 2 to 6 is allowed"),
    (["--metrics=[right, foo]"], "metrics: 'foo' not in the table; it has right, gbc, h_score, leep"),
    (["--metrics=[right]"], "metrics: right given; two or more are needed, none of them twice"),
]


def test_mistakes_are_one_line(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for options, message in MISTAKES:
        line = error_line(capsys, partial(run, table, tmp_path / "out", *options), code=1)
        if not line.startswith(f"error: {message}"):
            wrong.append((message, line))
    assert not wrong, wrong

"""What `headstart stability` writes, prints and publishes of a study, and what it never replaces."""

import csv
import json
from functools import partial
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from headstart.tests.material.mistakes import error_line
from headstart.tests.material.score_tables import PERFORMANCES, SCORES, SOURCES, TARGETS, run, write_table


def test_tables_and_pictures_are_written(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    document = run(table, output, "--pool_size=4", "--save_outcomes=true")
    with (output / "win_rates.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 5 * len(SCORES)
    for row in rows:
        rates = document[f"win_rate_percent_ties_{row['ties']}"][row["metric"]]
        assert float(row["percent"]) == rates[row["measure"]]
    with (output / "setup_stability.csv").open() as file:
        assert {row["varying"]: float(row["setup_stability"]) for row in csv.DictReader(file)} == document[
            "setup_stability"
        ]
    for name in ("scatter", "components", "experiments"):
        with Image.open(output / f"{name}.png") as picture:
            brightness = np.asarray(picture.convert("L"))
        assert brightness.min() < 100
        assert brightness.max() > 250
    outcomes = pd.read_csv(output / "outcomes.csv.gz")
    assert len(outcomes) == document["experiments"] == comb(SOURCES, 4) * TARGETS * 4
    np.testing.assert_allclose(outcomes["right"], 1, atol=1e-12)
    np.testing.assert_allclose(outcomes.loc[outcomes["measure"] != "rel_at_1", "gbc"], -1, atol=1e-12)
    winners = outcomes.loc[outcomes["measure"] == "pearson", "winners"].str.split(";")
    won = sum(1 / len(its) for its in winners if "right" in its)
    assert 100 * won / len(winners) == pytest.approx(document["win_rate_percent"]["right"]["pearson"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "Setup stability" in printed
    assert "leader: H-score and right with ties=split (34.4 %) but right with ties=last (100.0 %)" in printed
    assert "Kendall: right leads with ties=split, whichever target is left out" in printed
    assert not list(output.glob("*.partial"))


@pytest.mark.usefixtures("without_figures")
def test_printed_rates_lie_within_their_ranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three metrics with the same scores win a third each, whichever target is left out."""
    same = dict.fromkeys(("gbc", "GBC+", "gbc_é"), PERFORMANCES)
    run(write_table(tmp_path / "table.csv", ["t0", "t1"], same), tmp_path / "out", "--pool_size=4")
    printed = capsys.readouterr().out
    assert printed.count("33.3 [33.3, 33.3]") == 3 * 5
    for title in ("GBC", "GBC+", "gbc_é"):
        assert printed.count(f"\n{title} ") >= 2


@pytest.mark.usefixtures("without_figures")
def test_a_study_of_another_table_is_not_replaced_unasked(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(table, tmp_path / "out", "--pool_size=4")
    assert run(table, tmp_path / "out", "--pool_size=4")["setup_stability"] == first["setup_stability"]
    other = write_table(tmp_path / "other.csv", ["t0", "t1"], SCORES)
    for studied, options, key in (
        (other, ["--pool_size=4"], "table/sha256"),
        (table, ["--pool_size=3"], "pool_size"),
        (table, ["--pool_size=4", "--metrics=[gbc, right]"], "metrics"),
    ):
        line = error_line(capsys, partial(run, studied, tmp_path / "out", *options), 1)
        assert f"holds results of another configuration ({key}); " in line
    kept = json.loads((tmp_path / "out" / "stability.json").read_text())
    assert (kept["pool_size"], kept["metrics"], kept["targets"]) == (4, first["metrics"], first["targets"])
    assert run(other, tmp_path / "out", "--pool_size=4", "--overwrite=true")["targets"] == ["t0", "t1"]

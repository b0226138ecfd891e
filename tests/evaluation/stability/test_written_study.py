"""What `headstart stability` writes, prints and publishes of a study, and what it never replaces."""

import csv
import json
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

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
def test_printed_rates_add_up_to_100(table: Path, tmp_path: Path) -> None:
    run(table, tmp_path / "out", "--pool_size=3")
    with (tmp_path / "out" / "win_rates.csv").open() as file:
        rows = list(csv.DictReader(file))
    for ties in ("split", "last"):
        for measure in {row["measure"] for row in rows}:
            assert sum(int(row["rounded"]) for row in rows if (row["ties"], row["measure"]) == (ties, measure)) == 100


@pytest.mark.usefixtures("without_figures")
def test_printed_rates_lie_within_their_ranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three metrics with the same scores win a third each, whichever target is left out."""
    same = dict.fromkeys(("gbc", "GBC+", "gbc_é"), PERFORMANCES)
    run(write_table(tmp_path / "table.csv", ["t0", "t1"], same), tmp_path / "out", "--pool_size=4")
    printed = capsys.readouterr().out
    assert printed.count("33.3 [33.3, 33.3]") == 3 * 5
    for title in ("GBC", "GBC+", "gbc_é"):
        assert printed.count(f"\n{title} ") >= 2


@pytest.mark.slow
def test_figures_take_what_is_asked_for(table: Path, tmp_path: Path) -> None:
    wide = run(table, tmp_path / "all", "--pool_size=4")
    chosen = ["--figures.metrics=[leep, right]", "--figures.target=t2", "--figures.measure=kendall"]
    narrow = run(table, tmp_path / "two", "--pool_size=4", *chosen)
    assert wide["setup_stability"] == narrow["setup_stability"]
    widths = []
    for name in ("all", "two"):
        with Image.open(tmp_path / name / "scatter.png") as picture:
            widths.append(picture.width)
    assert widths[0] > widths[1], "six panels against one"


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
        with pytest.raises(SystemExit):
            run(studied, tmp_path / "out", *options)
        assert f"holds results of another configuration ({key}); " in capsys.readouterr().err
        assert json.loads((tmp_path / "out" / "stability.json").read_text())["pool_size"] == 4
    assert run(other, tmp_path / "out", "--pool_size=4", "--overwrite=true")["targets"] == ["t0", "t1"]

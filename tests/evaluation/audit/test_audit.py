"""`headstart audit` on tables whose answers follow without computation, and its mistakes."""

import csv
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats

from headstart import evaluate
from headstart.evaluation.audit import findings
from headstart.output.results_folder import DashboardResults
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.score_tables import SIZES, TARGETS, make_table, rising_table, write_table
from headstart.tests.material.score_tables import run_audit as run

FACTS = "source,parameters,accuracy\nsmall,1,60\nmiddle,2,70\nlarge,3,65\nhuge,4,80\nother,,"
MEASURES = ["weighted_kendall", "kendall", "pearson", "rel_at_1"]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.csv"
    path.write_text(FACTS)
    return path


@pytest.mark.usefixtures("without_figures")
def test_names_are_neither_markdown_nor_formulas(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", rising_table({"*m*": [1, 2, 3, 5], "=[n](o)": [4, 3, 1, 2]}))
    table.write_text(table.read_text().replace("small", "-<b>small").replace("t0", "+t0"))
    run(table, tmp_path / "out")
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| \\*m\\* | " in report
    assert not [name for name in ("*m*", "[n](o)", "<b>small") if name in report.replace("\\<", "")]
    names = {"rankers": {"'=[n](o)", "'+t0"}, "left_out": {"'=[n](o)", "'-<b>small"}, "ranks": {"'-<b>small", "'+t0"}}
    for name, expected in names.items():
        cells = set(pd.read_csv(tmp_path / "out" / f"{name}.csv", dtype=str).to_numpy().ravel())
        assert expected <= cells
        assert not cells & {cell[1:] for cell in expected}


@pytest.mark.usefixtures("without_figures")
def test_the_best_metrics_and_their_equals_are_marked(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    noise = {"right": 0.0, "near": 0.02, "wrong": 9.0, "flat": 0.01}
    drawn = [(generator.uniform(0.2, 0.9, 6), generator.normal(size=(4, 6))) for _ in range(8)]
    performances, normal = (np.stack(parts, axis=-1) for parts in zip(*drawn, strict=True))
    scores = performances + np.array([*noise.values()])[:, None, None] * normal
    scores[3, :, 3] = 7
    write_table(tmp_path / "table.csv", make_table(scores, performances, metrics=list(noise)))
    document = run(tmp_path / "table.csv", tmp_path / "out")

    best = document["best"]["kendall"]
    assert (best["metrics"], best["tied"], best["not_compared"]) == (["right"], ["near"], {"flat": ["t3"]})
    report = (tmp_path / "out" / "report.md").read_text()
    assert re.search(r"\| right \| \S+ \[[^]]*\] \* \|", report) or "| right | 1.000 * |" in report


def test_performances_alone_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = run(write_table(tmp_path / "table.csv", rising_table()), tmp_path / "out")
    assert list(document["rankers"]) == ["mean_rank"]
    for measure in MEASURES:
        its = document["rankers"]["mean_rank"][measure]
        assert its["mean"] == pytest.approx(1)
        assert its["ci95"] == [None, None], "three targets"
        assert its["per_target"] == pytest.approx(dict.fromkeys(TARGETS, 1))
    assert document["ranks"]["mean_spearman"] == pytest.approx(1)
    assert document["ranks"]["kendalls_w"] == pytest.approx(1)
    printed = " ".join(capsys.readouterr().out.split())
    assert "reaches 1.000 by weighted Kendall" in printed
    assert "3 targets have no intervals of 95 % and no significant differences at 5 %; both need 6 targets." in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("audit.json", "report.md", "rankers.csv", "left_out.csv", "ranks.csv", "rankers.png")
    }


def test_facts_rank_and_models_are_left_out(tmp_path: Path, facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"gbc": [4, 3, 2, 1], "own": [1, 2, 4, 3], "same": [5] * 4}
    document = run(write_table(tmp_path / "table.csv", rising_table(scores)), tmp_path / "out", f"--facts={facts}")
    assert list(document["rankers"]) == ["mean_rank", "parameters", "source_accuracy", "gbc", "own"]
    kendall = {name: ranker["kendall"]["mean"] for name, ranker in document["rankers"].items()}
    expected = {"mean_rank": 1, "parameters": 1, "source_accuracy": 2 / 3, "gbc": -1, "own": 2 / 3}
    assert kendall == pytest.approx(expected)
    assert document["minus_mean_rank"]["gbc"]["kendall"]["mean"] == pytest.approx(-2)
    # The mean rank is the order by performance, which leaves nothing.
    assert document["kendall_given_mean_rank"]["own"] == {
        "mean": None,
        "ci95": [None, None],
        "p_value": None,
        "per_target": dict.fromkeys(TARGETS),
    }
    assert document["leave_one_model_out"]["own"]["kendall"] == pytest.approx(
        {"small": 1 / 3, "middle": 1 / 3, "large": 1, "huge": 1}
    )
    assert document["left_out"] == {"same": "the same score for all sources on every target"}
    constant = tmp_path / "constant.csv"
    constant.write_text("source,parameters\n" + "\n".join(f"{name},7" for name in SIZES))
    alike = run(write_table(tmp_path / "table.csv", rising_table()), tmp_path / "alike", f"--facts={constant}")
    assert (list(alike["rankers"]), alike["left_out"]) == (["mean_rank"], {"parameters": "the same for all sources"})
    printed = " ".join(capsys.readouterr().out.split())
    assert "Metrics not significantly different from it, each tested separately at 5 %: GBC, own." in printed
    assert "Left out: same (the same score" in printed
    for name, count in (("rankers", 5 * 4 * 3 + 4 * 3), ("left_out", 5 * 4 * 4), ("ranks", 4 * 3)):
        with (tmp_path / "out" / f"{name}.csv").open() as file:
            assert len(list(csv.DictReader(file))) == count
    for name in ("rankers", "beyond_mean_rank"):
        with Image.open(tmp_path / "out" / f"{name}.png") as picture:
            assert np.asarray(picture.convert("L")).min() < 100


def test_baselines_of_a_table_are_static(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of `transferability` may have them as metrics; they are no metrics that beat the mean rank or do not."""
    table = write_table(tmp_path / "table.csv", rising_table({"parameters": [4, 3, 2, 1], "own": [1, 2, 4, 3]}))
    document = run(table, tmp_path / "out")
    assert set(document["rankers"]) == {"mean_rank", "parameters", "own"}
    printed = " ".join(capsys.readouterr().out.split())
    assert "Metrics not significantly different from it, each tested separately at 5 %: own." in printed


@pytest.mark.slow
@pytest.mark.usefixtures("without_figures")
def test_a_table_of_many_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_LEFT_OUT", 30_000)
    performances = np.random.default_rng(0).uniform(size=(20_000, 2))
    write_table(tmp_path / "table.csv", make_table(np.empty((0, 20_000, 2)), performances))
    document = run(tmp_path / "table.csv", tmp_path / "out")
    expected = stats.kendalltau(*performances.T).statistic
    assert document["rankers"]["mean_rank"]["kendall"]["mean"] == pytest.approx(expected)
    assert document["leave_one_model_out"] == {}
    assert document["not_computed"][-1].startswith("No leave one model out: 20000 sources")


def test_result_goes_to_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[Any, ...]] = []
    monkeypatch.setattr(DashboardResults, "publish", lambda *args: published.append(args))
    table = write_table(tmp_path / "table.csv", rising_table({"gbc": [1, 2, 3, 4]}))
    evaluate.main(["audit", f"--table={table}", f"--output={tmp_path / 'out'}", "--dashboard.name=mine"])
    [(results, job_type, title, _, _, tables)] = published
    assert (results.dashboard.name, job_type, results.path) == ("mine", "audit", tmp_path / "out")
    assert title == "audit, 1 metrics, 4 sources, 3 targets"
    assert set(tables) == {"rankers", "left_out", "ranks"}
    assert {"rankers.png", "beyond_mean_rank.png", "audit.json", "report.md"} <= {p.name for p in results.written}


CELLS = "source,target,performance\n"
TAKEN = "metric,score," + CELLS + "\n".join(f"mean_rank,{i},s{i},t{j},{i}" for i in range(3) for j in range(2))
FACTS_OPTION = ["--facts=facts.csv"]
# A file that is written before, its content, the options, and what the message begins with.
MISTAKES: list[tuple[str, str, list[str], str]] = [
    ("", "", ["--metrics=[gbc]"], "metrics: 'gbc' not in the table; it has none"),
    ("", "", ["--metrics=[]"], "metrics: none given; one or more"),
    ("", "", ["--facts=none.csv"], "facts: there is no file 'none.csv'; give a CSV file in UTF-8, or a Parquet file"),
    ("facts.csv", "source,size\n", FACTS_OPTION, "facts: a column source and parameters or accuracy are needed"),
    ("facts.csv", "source,accuracy\nsmall,1\nlarge,2", FACTS_OPTION, "facts: nothing of 'middle', 'huge'; all"),
    ("facts.csv", "source,parameters\nhuge,1\nsmall,5M\nmiddle,2\nlarge,3", FACTS_OPTION, "facts: row 3: param"),
    ("facts.csv", "source,parameters\nsmall,5,6", FACTS_OPTION, "facts: 1 rows without the 2 fields of the first: "),
    ("facts.csv", "source,accuracy\nsmall,1\nsmall,2", FACTS_OPTION, "facts: row 3: source 'small' once more"),
    ("table.csv", f"{CELLS}a,t,1\nb,t,2", [], "table: 't' is the only target; two or more are"),
    ("table.csv", TAKEN, [], "table: mean_rank is a metric of the table, and also the name of"),
]


@pytest.mark.usefixtures("without_figures")
def test_mistakes_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name, text, options, message in MISTAKES:
        write_table(Path("table.csv"), rising_table())
        if name:
            Path(name).write_text(text)
        line = error_line(capsys, partial(run, Path("table.csv"), Path("out"), *options), code=1)
        if not line.startswith(f"error: {message}"):
            wrong.append((message, line))
    assert not wrong, wrong
    assert not Path("out").exists()


@pytest.mark.usefixtures("without_figures")
def test_an_audit_of_other_facts_is_not_replaced_unasked(
    tmp_path: Path, facts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, output = write_table(tmp_path / "table.csv", rising_table()), tmp_path / "out"
    run(table, output, f"--facts={facts}")
    with pytest.raises(SystemExit):
        run(table, output)
    assert "holds results of another configuration (facts/sha256); " in capsys.readouterr().err
    assert list(run(table, output, "--overwrite")["rankers"]) == ["mean_rank"]

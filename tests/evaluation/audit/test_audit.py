"""`headstart audit` on tables whose answers follow without computation, and its mistakes."""

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
from headstart.output.results_folder import DashboardResults
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.score_tables import TARGETS, make_table, rising_table, write_table
from headstart.tests.material.score_tables import run_audit as run

MEASURES = ["weighted_kendall", "kendall", "pearson", "rel_at_1"]


def test_names_are_neither_markdown_nor_formulas(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", rising_table({"*m*": [1, 2, 3, 5], "=[n](o)": [4, 3, 1, 2]}))
    table.write_text(table.read_text().replace("small", "-<b>small").replace("t0", "+t0"))
    run(table, tmp_path / "out")
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| \\*m\\* | " in report
    assert not [name for name in ("*m*", "[n](o)", "<b>small") if name in report.replace("\\<", "")]
    names = {"rankers": {"'=[n](o)", "'+t0"}, "ranks": {"'-<b>small", "'+t0"}}
    for name, expected in names.items():
        cells = set(pd.read_csv(tmp_path / "out" / f"{name}.csv", dtype=str).to_numpy().ravel())
        assert expected <= cells
        assert not cells & {cell[1:] for cell in expected}


def test_the_best_metrics_and_their_equals_are_marked(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    noise = {"right": 0.0, "near": 0.02, "wrong": 9.0, "flat": 0.01}
    drawn = [(generator.uniform(0.2, 0.9, 6), generator.normal(size=(4, 6))) for _ in range(8)]
    performances, normal = (np.stack(parts, axis=-1) for parts in zip(*drawn, strict=True))
    scores = performances + np.array([*noise.values()])[:, None, None] * normal
    scores[3, :, 3] = 7
    write_table(tmp_path / "table.csv", make_table(scores, performances, metrics=list(noise)))
    best = run(tmp_path / "table.csv", tmp_path / "out")["best"]["kendall"]

    assert (best["metrics"], best["tied"], best["not_compared"]) == (["right"], ["near"], {"flat": ["t3"]})
    report = (tmp_path / "out" / "report.md").read_text()
    assert re.search(r"\| right \| \S+ \[[^]]*\] \* \|", report) or "| right | 1.000 * |" in report


def test_performances_alone_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = run(write_table(tmp_path / "table.csv", rising_table()), tmp_path / "out")
    assert list(document["rankers"]) == ["mean_rank"]
    for measure in MEASURES:
        summary = document["rankers"]["mean_rank"][measure]
        assert summary["mean"] == pytest.approx(1)
        assert summary["ci95"] == [None, None], "three targets"
        assert summary["per_target"] == pytest.approx(dict.fromkeys(TARGETS, 1))
    printed = " ".join(capsys.readouterr().out.split())
    assert "reaches 1.000 by weighted Kendall" in printed
    assert "3 targets have no intervals of 95 % and no significant differences at 5 %; both need 6 targets." in printed


def test_metrics_and_baselines_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published: list[tuple[Any, ...]] = []
    monkeypatch.setattr(DashboardResults, "publish", lambda *args: published.append(args))
    # A table may have baselines of the catalogue, which beat the mean rank as little as metrics do, or more.
    scores = {"gbc": [4, 3, 2, 1], "own": [1, 2, 4, 3], "same": [5] * 4, "parameters": [1, 2, 3, 4]}
    table, output = write_table(tmp_path / "table.csv", rising_table(scores)), tmp_path / "out"
    evaluate.main(["audit", str(table), f"--output={output}", "--dashboard.name=mine"])
    [(results, job_type, title, _, document, tables)] = published
    assert (results.dashboard.name, job_type, title) == ("mine", "audit", "audit, 3 metrics, 4 sources, 3 targets")

    kendall = {name: ranker["kendall"]["mean"] for name, ranker in document["rankers"].items()}
    assert kendall == pytest.approx({"mean_rank": 1, "gbc": -1, "own": 2 / 3, "parameters": 1})
    assert document["minus_mean_rank"]["gbc"]["kendall"]["mean"] == pytest.approx(-2)
    # The mean rank is the order by performance, which leaves nothing.
    nothing = {"mean": None, "ci95": [None, None], "p_value": None, "per_target": dict.fromkeys(TARGETS)}
    assert document["kendall_given_mean_rank"]["own"] == nothing
    assert document["left_out"] == {"same": "the same score for all sources on every target"}

    printed = " ".join(capsys.readouterr().out.split())
    assert "Metrics not significantly different from it, each tested separately at 5 %: GBC, own." in printed
    assert "Left out: same (the same score" in printed
    for name, count in (("rankers", 4 * 4 * 3 + 3 * 3), ("ranks", 4 * 3)):
        assert len(pd.read_csv(output / f"{name}.csv")) == len(tables[name][1]) == count
    with Image.open(output / "rankers.png") as picture:
        assert np.asarray(picture.convert("L")).min() < 100
    assert {path.name for path in results.written} == {path.name for path in output.iterdir()}


@pytest.mark.slow
def test_a_table_of_many_sources(tmp_path: Path) -> None:
    performances = np.random.default_rng(0).uniform(size=(20_000, 2))
    write_table(tmp_path / "table.csv", make_table(np.empty((0, 20_000, 2)), performances))
    document = run(tmp_path / "table.csv", tmp_path / "out")
    expected = stats.kendalltau(*performances.T).statistic
    assert document["rankers"]["mean_rank"]["kendall"]["mean"] == pytest.approx(expected)


CELLS = "source,target,performance\n"
TAKEN = "metric,score," + CELLS + "\n".join(f"mean_rank,{i},s{i},t{j},{i}" for i in range(3) for j in range(2))
# The table, the options, and what the message begins with.
MISTAKES: list[tuple[str, list[str], str]] = [
    (f"{CELLS}a,t,1\nb,t,2\na,u,1\nb,u,2", ["--metrics=[gbc]"], "metrics: 'gbc' not in the table; it has none"),
    (f"{CELLS}a,t,1\nb,t,2\na,u,1\nb,u,2", ["--metrics=[]"], "metrics: none given; one or more"),
    (f"{CELLS}a,t,1\nb,t,2", [], "table: 't' is the only target; two or more are"),
    (TAKEN, [], "table: the audit has a ranker mean_rank of its own; rename that metric"),
]


def test_mistakes_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for text, options, message in MISTAKES:
        Path("table.csv").write_text(text)
        line = error_line(capsys, partial(run, Path("table.csv"), Path("out"), *options), code=1)
        if not line.startswith(f"error: {message}"):
            wrong.append((message, line))
    assert not wrong, wrong
    assert not Path("out").exists()

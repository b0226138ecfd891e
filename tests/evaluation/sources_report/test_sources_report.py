"""`headstart sources-report` against SciPy, its files under names of every kind, and its mistakes."""

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart import evaluate
from headstart.output.results_folder import DashboardResults
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.root import ROOT, require_checkout

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
TABLES = SHARED / "data" / "stable_transfer"
MEASURES = ["weighted_kendall", "kendall", "pearson", "rel_at_1"]
FILES = {f"sources_report.{kind}" for kind in ("json", "md", "tex")} | {"over_targets.csv", "by_target.csv"}
NAMES = ["gbc", "x & y_1 {50} % $2^3$ ~ # \\end{tabular}", "[5pt] naïve 方法", "a|b *c*", "=1"]


@pytest.fixture
def page() -> str:
    require_checkout()
    return (ROOT / "docs" / "sources_report.md").read_text(encoding="utf-8")


TARGETS = ["s0", "s1", "t & 2", "t_3", "=t4", "t5", "t6", "t7"]


def write_table(path: Path, metrics: list[str], sources: int = 6, shift: float = 0.0, seed: int = 0) -> Path:
    """Write scores that are more or less like the performances, on targets of which two are sources, too."""
    generator = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "source", "target", "score", "performance"])
        for target in TARGETS:
            performances = generator.uniform(0.2, 0.9, sources)
            for index, metric in enumerate(metrics):
                scores = performances + 0.1 * index * generator.normal(size=sources)
                for source, values in enumerate(zip(scores, performances + shift, strict=True)):
                    writer.writerow([metric, f"s{source}", target, *values])
    return path


def run(table: Path, output: Path, *options: str) -> dict[str, Any]:
    evaluate.main(["sources-report", f"--table={table}", f"--output={output}", "--logger=false", *options])
    document: dict[str, Any] = json.loads((output / "sources_report.json").read_text(encoding="utf-8"))
    return document


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_values_means_and_intervals_are_those_of_scipy(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", ["gbc", "own", "other"])
    document = run(table, tmp_path / "out")
    rows = [row for row in read(table) if row["source"] != row["target"]]
    for metric in document["metrics"]:
        measured = []
        for target in document["targets"]:
            its = [row for row in rows if (row["metric"], row["target"]) == (metric, target)]
            x, y = (np.array([float(row[name]) for row in its]) for name in ("score", "performance"))
            assert len(x) == (5 if target in ("s0", "s1") else 6)
            coefficients = [f(x, y).statistic for f in (stats.weightedtau, stats.kendalltau, stats.pearsonr)]
            measured.append([*coefficients, y[x.argmax()] / y.max()])
        for index, measure in enumerate(MEASURES):
            values = [row[index] for row in measured]
            its = document["measured"][metric][measure]
            assert list(its["per_target"].values()) == pytest.approx(values, abs=1e-12)
            assert its["mean"] == pytest.approx(np.mean(values))
            if np.ptp(values) > 1e-12:
                low, high = stats.t.interval(0.95, 7, np.mean(values), stats.sem(values))
                assert its["ci95"] == pytest.approx([max(low, 0 if measure == "rel_at_1" else -1), min(high, 1)])
            else:
                assert its["ci95"] == [None, None]
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_csv_files_have_what_the_document_has(tmp_path: Path) -> None:
    document = run(write_table(tmp_path / "table.csv", NAMES), tmp_path / "out")
    means, values = (read(tmp_path / "out" / f"{name}.csv") for name in ("over_targets", "by_target"))
    assert (len(means), len(values)) == (5 * 4, 5 * 4 * len(TARGETS))
    for row in means:
        metric = row["metric"].removeprefix("'")
        its, best = document["measured"][metric][row["measure"]], document["best"][row["measure"]]
        ends = [float(row[name]) if row[name] else None for name in ("ci95_low", "ci95_high")]
        assert [float(row["mean"]), *ends] == [its["mean"], *its["ci95"]]
        assert (row["place"] == "best", row["place"] == "tied") == (metric in best["metrics"], metric in best["tied"])
    for row in values:
        metric, target = (row[name].removeprefix("'") for name in ("metric", "target"))
        assert float(row["value"]) == document["measured"][metric][row["measure"]]["per_target"][target]
        assert (row["place"] == "best") == (metric in document["best"][row["measure"]]["on_target"][target])
    assert not any(row["metric"].startswith("=") or row["target"].startswith("=") for row in values)


def test_latex_marks_the_best_and_keeps_its_columns(tmp_path: Path) -> None:
    document = run(write_table(tmp_path / "table.csv", NAMES), tmp_path / "out")
    text = (tmp_path / "out" / "sources_report.tex").read_text(encoding="utf-8")
    tables = re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}\n", text, re.DOTALL)
    assert [len(columns) for columns, _ in tables] == [1 + 4, *[1 + len(TARGETS)] * 4]
    for columns, body in tables:
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) == 1 + len(NAMES)
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) + 1 == len(columns)
            assert not re.search(r"(?<!\\)[%#_~^]", row.replace("$-$", ""))
            assert row.count("{") - row.count("}") == row.count(r"\{") - row.count(r"\}")
            assert not row.startswith("[")
    [rest] = re.findall(r"naïve 方法(.*)\\\\", tables[0][1])
    assert ("\\textbf{" in rest) == any("[5pt] naïve 方法" in best["metrics"] for best in document["best"].values())
    bold = [body.count("\\textbf{") for _, body in tables]
    assert bold[0] == sum(len(best["metrics"]) for best in document["best"].values())
    assert bold[1:] == [sum(map(len, best["on_target"].values())) for best in document["best"].values()]
    tied = sum(len(best["tied"]) for best in document["best"].values())
    assert tables[0][1].count("\\textsuperscript{\\dag}") == tied > 0


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
def test_latex_compiles(tmp_path: Path) -> None:
    run(write_table(tmp_path / "table.csv", NAMES), tmp_path / "out")
    text = (tmp_path / "out" / "sources_report.tex").read_text(encoding="utf-8").encode("ascii", "ignore").decode()
    packages = "\\usepackage{booktabs, adjustbox}"
    (tmp_path / "whole.tex").write_text(
        f"\\documentclass{{article}}{packages}\\begin{{document}}{text}\\end{{document}}"
    )
    subprocess.run(["pdflatex", "-halt-on-error", "whole.tex"], cwd=tmp_path, check=True, capture_output=True)


def test_markdown_marks_the_best_and_keeps_its_columns(tmp_path: Path) -> None:
    document = run(write_table(tmp_path / "table.csv", NAMES), tmp_path / "out")
    lines = (tmp_path / "out" / "sources_report.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows]
    assert bars == [6] * 7 + [2 + len(TARGETS)] * 7 * 4
    numbers = [row[row.index(" | ") :] for row in rows[2:7]]
    assert sum(row.count("**") for row in numbers) == 2 * sum(
        len(best["metrics"]) for best in document["best"].values()
    )
    assert sum(row.count("†") for row in numbers) == sum(len(best["tied"]) for best in document["best"].values())
    plain = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", "\n".join(rows))
    assert all(name.replace("gbc", "GBC") in plain for name in NAMES)


def test_metrics_without_a_value_are_named_and_not_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = write_table(tmp_path / "table.csv", ["gbc", "own", "flat"], shift=-2).read_text().splitlines()
    # One metric gives all sources of a target the same score, and an added one gives the same everywhere.
    lines = [re.sub(r"^(flat,\w+,t_3),[^,]*", r"\1,7", line) for line in lines]
    lines += [re.sub(r"^own,(.*),[^,]*,", r"constant,\1,1,", line) for line in lines if line.startswith("own")]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    document = run(tmp_path / "table.csv", tmp_path / "out")
    assert document["left_out"] == {"constant": "the same score for all sources on every target"}
    for measure, best in document["best"].items():
        assert "flat" not in (*best["metrics"], *best["tied"]), measure
        assert document["measured"]["flat"][measure]["per_target"]["t_3"] is None
    assert document["best"]["kendall"]["not_compared"] == {"flat": ["t_3"]}
    assert set(document["measured"]["gbc"]["rel_at_1"]["per_target"].values()) == {None}, "all targets have losses"
    assert not any(document["best"]["rel_at_1"][name] for name in ("metrics", "tied", "not_compared"))
    printed = " ".join(capsys.readouterr().out.split())
    assert "Kendall: flat has no value on t_3, and is not compared." in printed
    assert "Rel@1: no metric has a value on any target." in printed
    assert f"on targets with negative performances: {', '.join(TARGETS)}." in printed
    assert "Left out: constant (the same score for all sources on every target)." in printed
    assert "nan" not in printed


def test_a_single_metric_and_a_single_target_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"m,s{index},t,{index},{index % 3}" for index in range(4)]
    (tmp_path / "table.csv").write_text("\n".join(["metric,source,target,score,performance", *rows]))
    document = run(tmp_path / "table.csv", tmp_path / "out")
    its = document["measured"]["m"]["pearson"]
    assert its["mean"] == pytest.approx(stats.pearsonr(range(4), [0, 1, 2, 0]).statistic)
    assert its["ci95"] == [None, None]
    assert document["best"]["pearson"] == {"metrics": [], "tied": [], "not_compared": {}, "on_target": {"t": []}}
    assert "1 target has no intervals of 95 %" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "document"), [("sources-report", "sources_report"), ("stability",) * 2, ("audit",) * 2]
)
def test_scores_and_performances_may_be_two_files(tmp_path: Path, name: str, document: str) -> None:
    together = write_table(tmp_path / "together.csv", ["gbc", "own"])
    rows = read(together)
    scores = [",".join(row[key] for key in ("metric", "source", "target", "score")) for row in rows]
    (tmp_path / "scores.csv").write_text("\n".join(["metric,source,target,score", *scores]))
    known = {",".join(row[key] for key in ("source", "target", "performance")) for row in rows}
    (tmp_path / "performances.csv").write_text("\n".join(["source,target,performance", *sorted(known)]))
    documents = []
    for table, *options in ((together,), (tmp_path / "scores.csv", f"--performances={tmp_path / 'performances.csv'}")):
        output = tmp_path / table.stem
        evaluate.main([name, f"--table={table}", f"--output={output}", "--logger=false", *options])
        documents.append(json.loads((output / f"{document}.json").read_text()))
        for key in ("table", "performances", "seconds"):
            documents[-1].pop(key, None)
    assert documents[0] == documents[1]


def test_very_many_targets_are_left_to_the_csv_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    rows = [f"{m},s{s},t{t},{generator.normal()},{s % 5}" for t in range(41) for m in "ab" for s in range(6)]
    (tmp_path / "table.csv").write_text("\n".join(["metric,source,target,score,performance", *rows]))
    run(tmp_path / "table.csv", tmp_path / "out")
    assert "The values on each of 41 targets are in by_target.csv." in " ".join(capsys.readouterr().out.split())
    assert len(read(tmp_path / "out" / "by_target.csv")) == 2 * 4 * 41
    assert (tmp_path / "out" / "sources_report.tex").read_text().count("\\begin{tabular}") == 1
    assert "t17" not in (tmp_path / "out" / "sources_report.md").read_text()


def test_result_goes_to_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[Any, ...]] = []
    monkeypatch.setattr(DashboardResults, "publish", lambda *args: published.append(args))
    table = write_table(tmp_path / "table.csv", ["gbc", "own"])
    evaluate.main(["sources-report", f"--table={table}", f"--output={tmp_path / 'out'}", "--dashboard.name=mine"])
    [(results, job_type, title, _, _, tables)] = published
    assert (results.dashboard.name, job_type, results.path) == ("mine", "sources-report", tmp_path / "out")
    assert title == "sources report, 2 metrics, 6 sources, 8 targets"
    assert set(tables) == {"over_targets", "by_target"}
    assert {path.name for path in results.written} == FILES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics=[foo]"], "metrics: 'foo' not in the table; it has gbc, own"),
        (["--metrics=[gbc, gbc]"], "metrics: gbc, gbc given; one or more are needed, none of them twice"),
        (["--columns={score: x}"], "columns: score is to be 'x', but the first line has"),
        (["--table=missing.csv"], "table: 'missing.csv' cannot be read"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "table.csv", ["gbc", "own"])
    assert error_line(capsys, lambda: run(table, tmp_path / "out", *options), code=1).startswith(f"error: {message}")
    assert not (tmp_path / "out").exists()


def test_a_table_without_metrics_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text("source,target,performance\na,t,1\nb,t,2\n")
    with pytest.raises(SystemExit):
        run(tmp_path / "table.csv", tmp_path / "out")
    assert "error: table: no column 'metric'" in capsys.readouterr().err


def test_a_report_of_another_table_is_not_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, other = (write_table(tmp_path / f"{seed}.csv", ["gbc", "own"], seed=seed) for seed in (0, 1))
    run(first, tmp_path / "out")
    with pytest.raises(SystemExit):
        run(other, tmp_path / "out")
    assert "holds results of another configuration (table/sha256); " in capsys.readouterr().err
    run(other, tmp_path / "out", "--overwrite")


def test_the_command_of_the_page_prints_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    [line] = re.findall(r"^headstart (.*)$", page, re.MULTILINE)
    evaluate.main(line.split())
    assert {path.name for path in (tmp_path / "runs" / "sources_report").iterdir()} == FILES

    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert set(shown.splitlines()) <= set(printed)


@pytest.mark.skipif(not TABLES.is_dir(), reason="needs the released tables of HEADSTART_SHARED, by default ../shared")
@pytest.mark.parametrize(
    ("table", "best", "tied"),
    [
        ("source_datasets_table.csv", "logme", {"gbc", "leep"}),
        ("source_model_architectures_table.csv", "nleep", set()),
    ],
)
def test_the_best_metrics_of_the_papers_tables(table: str, best: str, tied: set[str], tmp_path: Path) -> None:
    document = run(TABLES / table, tmp_path)
    for measure in ("kendall", "pearson"):
        assert document["best"][measure]["metrics"] == [best]
        assert set(document["best"][measure]["tied"]) == tied
    assert not any(found["not_compared"] for found in document["best"].values())

"""`headstart published`: the register against local copies, a small register of its own, and its mistakes."""

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headstart import evaluate
from headstart.evaluation.audit.audit import FILES
from headstart.evaluation.published import published as command
from headstart.evaluation.published.register import TABLES, PublishedFile, PublishedTable, find_files, readable_table
from headstart.evaluation.table_results import TableResults
from headstart.metrics.ranking.static_orders import measure_targets
from headstart.tests.material.file_servers import serve_files
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.root import ROOT

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared")) / "data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the tables of HEADSTART_SHARED, by default ../shared")
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_register(name: str, tmp_path: Path) -> None:
    """The mean rank is computed by loops of its own, with SciPy's ranks and weighted tau."""
    table = TABLES[name]
    options = {**table.options, "output": str(tmp_path / "out"), "logger": False}
    readable, _ = readable_table(table, find_files(table, SHARED), tmp_path)
    cells = TableResults("", FILES, str(readable), 0, **options).table

    ranks = np.full(cells.known.shape, np.nan)
    for target, known in enumerate(cells.known.T):
        ranks[known, target] = stats.rankdata(-cells.performances[known, target])
    values = []
    for target, known in enumerate(cells.known.T):
        elsewhere = -np.nanmean(np.delete(ranks, target, axis=1), axis=1)
        values.append(stats.weightedtau(elsewhere[known], cells.performances[known, target]).statistic)
    metrics = measure_targets(cells.scores, cells.performances, cells.known)[:, :, 0].mean(axis=1)

    figures = dict(zip(cells.metrics, metrics, strict=True)) | {"mean_rank": np.mean(values)}
    sizes = {"sources": len(cells.sources), "targets": len(cells.targets), "cells": cells.known.sum()}
    assert {**sizes, **figures} == pytest.approx(table.expected, abs=5e-4)


def test_every_table_has_a_citation_and_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.main(["published", "--list"])
    printed = " ".join(capsys.readouterr().out.split())
    for name, table in TABLES.items():
        assert f"{name}: {table.title} {table.citation} " in printed
        assert all(f"{file.name}: {file.url}" in printed and file.url.startswith("https://") for file in table.files)


PERFORMANCES = {"x": {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, "y": {"a": 0.2, "b": 0.1, "c": 0.4, "d": 0.3}}
CODE = f"import nothing_there\n\ndef run():\n    accuracies = {PERFORMANCES}\n    other = 1\n"


def expect(*figures: float) -> dict[str, float]:
    return dict(zip(("sources", "targets", "cells", "mean_rank"), figures, strict=True))


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, PublishedTable]]:
    """Replace the register by two tables on a local server: one in Python code, one with a hole, in CSV."""
    rows = [f"{s},{t},{v}" for t, row in PERFORMANCES.items() for s, v in row.items() if (s, t) != ("a", "y")]
    content = "\n".join(["source,target,performance", *rows, "b,z,0.1", "c,z,0.2", "d,z,0.3"])
    digest = hashlib.sha256(content.encode()).hexdigest()
    code = PublishedFile("code.csv", "/code.py", variable="accuracies")
    holes = PublishedFile("holes.csv", "/table.csv", digest)
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve_files() as server:
        server.files = {code.url: CODE.encode(), holes.url: content.encode()}
        code, holes = (replace(file, url=server.url + file.url) for file in (code, holes))
        tables = {
            "code": PublishedTable("of code", "A, B, 2020", [code], expect(4, 2, 8, 0.5)),
            "holes": PublishedTable("with holes", "C, D, 2021", [holes], expect(3, 3, 9, 0.5), {"missing": "complete"}),
        }
        monkeypatch.setattr(command, "TABLES", tables)
        yield tables


def run(name: str, output: Path, *options: str) -> None:
    evaluate.main(["published", name, f"--output={output}", "--logger=false", *options])


@pytest.mark.usefixtures("register")
def test_all_tables_are_downloaded_once_and_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("all", tmp_path / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert "WARNING: mean_rank is" in printed
    assert "Cite: A, B, 2020" in printed
    document = json.loads((tmp_path / "out" / "static_order.json").read_text())
    sizes = [row["sources x targets"] for row in document["figures"]["Static order"]]
    assert sizes == ["4 x 2", "3 x 3"]
    holes = {row["kept"]: row["sources x targets"] for row in document["figures"]["Effect of holes"]}
    assert holes["each target's own sources"] == "4 x 3"
    assert any(note.startswith("holes: The largest part without holes is used: 3 of 4") for note in document["notes"])
    assert any(note.startswith("code: WARNING: mean_rank is") for note in document["notes"])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("code", "holes", "static_order.json", "static_order.md", "static_order.csv", "static_order.png")
    }
    table = pd.read_csv(tmp_path / "out" / "code" / "table.csv").pivot(index="source", columns="target")["performance"]
    assert table.to_dict() == PERFORMANCES
    report = (tmp_path / "out" / "static_order.md").read_text()
    assert "The largest part without holes is used" in report


def test_figures_as_expected_are_said_so(
    register: dict[str, PublishedTable],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = expect(4, 2, 8, stats.weightedtau([4, 3, 2, 1], [3, 4, 1, 2]).statistic)
    monkeypatch.setitem(register, "code", replace(register["code"], expected=expected))
    (tmp_path / "copy.py").write_text(CODE)
    run("code", tmp_path / "out", f"--file={tmp_path / 'copy.py'}")
    assert "As expected: all 4 figures are those of the register." in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "cache").exists(), "a local copy needs no download"


def test_figures_of_another_version_are_named(
    register: dict[str, PublishedTable], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "holes.csv").write_text("source,target,performance\na,x,0.1\nb,x,0.2\na,y,0.1\nb,y,0.2")
    run("holes", tmp_path / "out", f"--file={tmp_path}")
    printed = " ".join(capsys.readouterr().out.split())
    assert "is not the version of holes.csv in the register (its SHA-256 is " in printed
    for figure, value in (("sources", 2), ("targets", 2), ("cells", 4)):
        assert f"WARNING: {figure} is {value} here and {register['holes'].expected[figure]} in the register." in printed


@pytest.mark.usefixtures("register")
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.py").write_text("other = {}")
    Path("call.py").write_text("accuracies = f()")
    for name, options, expected in (
        ("cods", [], "name: 'cods' is no published table; there are code, holes, and all"),
        ("code", ["--file=nowhere.csv"], "file: 'nowhere.csv' is not a copy of the table; give a folder with code.csv"),
        ("code", ["--file=."], "file: '.' has no code.csv; copy it there, or leave the option out to download it"),
        ("all", ["--file=nowhere.csv"], "file: nowhere.csv given; for all tables give a folder"),
        ("code", ["--file=other.py"], "file: 'other.py' assigns no 'accuracies'"),
        ("code", ["--file=call.py"], "file: 'call.py' cannot be read (malformed"),
    ):
        line = error_line(capsys, functools.partial(run, name, tmp_path / "out", *options))
        assert line.startswith(f"error: {expected}")

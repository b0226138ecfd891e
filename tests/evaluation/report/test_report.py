"""The page: its names are texts, it needs nothing but itself, and mistakes raise errors."""

import json
import re
from pathlib import Path

import pytest

from headstart.evaluate import main
from headstart.evaluation.report.report import report
from headstart.output.errors import UserError
from headstart.tests.material.ledgers import store
from headstart.tests.material.report_runs import METHODS, show, traces
from headstart.tests.material.runs import write_run


def test_nothing_is_loaded_from_elsewhere(runs: Path) -> None:
    page = show(runs)
    assert {address[:1] for address in page.addresses if address != "data:,"} == {"#"}
    assert not {"img", "iframe", "object", "embed", "audio", "video", "base"} & set(page.tags)
    assert not re.search(r"url\(|@import", "".join(page.styles))
    source = (runs.parent / "page.html").read_text()
    assert "default-src 'none'" in source
    # The charts' library is there once.
    assert source.count("window.vegaEmbed=") == 1


def test_the_same_runs_give_the_same_bytes(runs: Path) -> None:
    first = report(str(runs), output=str(runs.parent / "page.html")).read_bytes()
    assert report(str(runs), output=str(runs.parent / "again" / "page.html")).read_bytes() == first
    assert (runs.parent / "again" / "leaderboard.json").is_file()


def test_the_leaderboard_is_that_of_its_own_command(runs: Path) -> None:
    main(["report", str(runs), "--output", str(runs.parent / "page.html"), "--threshold=0.9"])
    main(["leaderboard", str(runs), "--output", str(runs.parent / "own"), "--threshold=0.9"])
    for kind in ("json", "csv", "md", "tex"):
        name = f"leaderboard.{kind}"
        assert (runs.parent / name).read_bytes() == (runs.parent / "own" / name).read_bytes()


def test_a_ledger_alone_is_shown(tmp_path: Path) -> None:
    page = show(store(tmp_path / "stored", dict(zip(METHODS, traces(0), strict=True))))
    assert len(page.tables["pets, resnet18 (DEFAULT)"]) == 1 + len(METHODS)


def test_another_leaderboard_beside_the_page_is_kept(runs: Path) -> None:
    show(runs)
    with pytest.raises(UserError, match=r"^output: .*leaderboard.json' holds results of another configuration"):
        show(runs, threshold=0.9)
    show(runs, threshold=0.9, overwrite=True)
    assert json.loads((runs.parent / "leaderboard.json").read_text())["criterion"]["threshold"] == 0.9


# What the file cka.json of a folder holds, and the end of the message.
MISTAKES = [
    ("", "holds no run of headstart train"),
    ("{", "cka.json' cannot be shown"),
    ('{"n_stimuli": 9}', r"cka.json' cannot be shown \(KeyError: 'pairwise'\)"),
]


def test_mistakes_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    folder, run = tmp_path / "given", write_run(tmp_path / "run")
    (run / "results.json").unlink()
    for given, message in ((folder, "there is no folder"), (run, ".*has no results.json")):
        with pytest.raises(UserError, match=f"^folder: {message}"):
            report(str(given), output=str(tmp_path / "out" / "page.html"))

    folder.mkdir()
    for content, message in MISTAKES:
        if content:
            (folder / "cka.json").write_text(content)
        with pytest.raises(UserError, match=f"^folder: .*{message}"):
            report(str(folder), output=str(tmp_path / "out" / "page.html"))
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_page_is_not_replaced(runs: Path) -> None:
    path = runs.parent / "page.html"
    path.write_text("mine")
    with pytest.raises(UserError, match=r"^output: .*page.html' holds something else"):
        show(runs)
    assert path.read_text() == "mine"

"""Commands and configurations on the page reproduce it and its runs."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.evaluate import main
from headstart.evaluation.report.report import report
from headstart.tests.material.ledgers import store
from headstart.tests.material.pages import Page
from headstart.tests.material.report_runs import METHODS, show, traces


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


def test_a_ledger_alone_is_shown_and_its_commands_are_not_invented(tmp_path: Path) -> None:
    page = show(store(tmp_path / "stored", dict(zip(METHODS, traces(0), strict=True))))
    assert len(page.tables["pets, resnet18 (DEFAULT)"]) == 1 + len(METHODS)
    assert not any("headstart train" in text for text in page.texts)


@pytest.mark.slow
def test_the_command_of_a_run_replicates_it(fit: Callable[..., Path]) -> None:
    from headstart.train import main as train

    folder = fit()
    page = Page(report(str(folder), output=str(folder.parent / "page.html")))
    assert (folder / "config.yaml").read_text() in page.texts
    [command] = [text for text in page.texts if text.startswith("headstart train")]
    train(shlex.split(command)[2:])
    before, again = (json.loads((each / "results.json").read_text()) for each in (folder, Path("runs/again/1")))
    # Whatever ledger lies beside, it is measured again.
    assert again["times"]["reused_traces"] == 0
    for name, scores in again["methods"].items():
        assert scores["samples_to_criterion"] == before["methods"][name]["samples_to_criterion"]

"""Commands and configurations on the page reproduce it and its runs."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from headstart.evaluate import main
from headstart.evaluation.report.report import report
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey
from headstart.tests.material.pages import Page
from headstart.tests.material.report_runs import METHODS, show, traces


def commands(page: Page, name: str) -> list[str]:
    """Return the arguments of headstart train in the command of a method's row."""
    text = next(text for text in page.texts if f"\n# {name}\n" in f"\n{text}")
    lines = text.splitlines()
    python, entry, *options = shlex.split(lines[lines.index(f"# {name}") + 1])
    assert (python, entry) == ("headstart", "train")
    return options


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


def test_the_page_gives_its_own_command(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"threshold": 0.85, "consecutive": 3, "where": {"dataset": "pets"}, "methods": ["mine", "third"]}
    page = show(runs, **options, tuned={"mine": "pets"})
    [command] = [text for text in page.texts if text.startswith("headstart report")]
    before = {path.name: path.read_bytes() for path in runs.parent.iterdir() if path.is_file()}
    monkeypatch.chdir(runs.parent)
    main([*shlex.split(command)[1:], "--output=again/page.html"])
    assert {path.name: path.read_bytes() for path in (runs.parent / "again").iterdir()} == before


@pytest.mark.slow
def test_several_folders_are_one_page_that_gives_its_own_command(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes [1].txt").touch()
    main(["report", "runs/pets", "notes [1].txt", "runs/flowers"])
    page = Page(tmp_path / "runs" / "report.html")
    document = json.loads((tmp_path / "runs" / "leaderboard.json").read_text())
    assert document["folders"] == ["runs/pets", "notes [1].txt", "runs/flowers"]
    assert [setting["dataset"] for setting in document["settings"]] == ["pets", "flowers"]
    [command] = [text for text in page.texts if text.startswith("headstart report")]
    assert command == "headstart report runs/pets 'notes [1].txt' runs/flowers --baseline=baseline"
    main([*shlex.split(command)[1:], "--output", "again/page.html"])
    for name, other in {"report.html": "page.html", "leaderboard.json": "leaderboard.json"}.items():
        assert (tmp_path / "again" / other).read_bytes() == (tmp_path / "runs" / name).read_bytes()
    main(["leaderboard", "runs/pets", "notes [1].txt", "runs/flowers", "--output=own"])
    assert (tmp_path / "own" / "leaderboard.json").read_bytes() == (tmp_path / "runs" / "leaderboard.json").read_bytes()


def test_a_ledger_alone_is_shown_and_its_commands_are_not_invented(tmp_path: Path) -> None:
    fed = {"batch_size": 1, "evaluate_every": 1, "validation_size": 100, "weights_sha256": "0" * 64}
    with Ledger(tmp_path / "stored") as ledger:
        stream = ledger.record(fed, description={"dataset": "pets", "backbone": "resnet18", "weights": "DEFAULT"})
        for name, counts in zip(METHODS, traces(0), strict=True):
            method = ledger.record(
                {"class": "headstart.modules.Mine", "hyperparameters": {"name": name}}, description={"name": name}
            )
            ledger.write({TraceKey(stream, method, k): Trace(trace) for k, trace in enumerate(counts)})
    page = show(tmp_path / "stored")
    assert len(page.tables["pets, resnet18 (DEFAULT)"]) == 1 + len(METHODS)
    assert not any("headstart train" in text for text in page.texts)


@pytest.mark.slow
def test_the_commands_of_rows_replicate_them(fit: Callable[..., Path]) -> None:
    from headstart.train import main as train

    folder = fit(
        "--model.methods={mean: headstart.modules.NearestClassMean, 'it''s {1}': headstart.modules.StreamingLDA}"
    )
    page = Page(report(str(folder), output=str(folder.parent / "page.html")))
    before = json.loads((folder / "results.json").read_text())
    # The first measures both of its methods in both orderings, whatever ledger lies beside; the second its own.
    for name, reused in (("it's {1}", 0), ("mean", 2)):
        options = commands(page, name)
        train(options)
        [output] = [option.partition("=")[2] for option in options if option.startswith("--trainer.default_root_dir=")]
        again = json.loads((folder.parent / output / "results.json").read_text())
        assert set(again["methods"]) == {"baseline", name}
        assert again["times"]["reused_traces"] == reused
        for each, scores in again["methods"].items():
            assert scores["samples_to_criterion"] == before["methods"][each]["samples_to_criterion"]


def test_configurations_stand_on_the_page(runs: Path) -> None:
    page = show(runs)
    config = (runs / "pets" / "config.yaml").read_text()
    assert config in page.texts
    assert yaml.safe_load(config)["model"]["methods"].keys() == set(METHODS[1:])
    options = dict(option.lstrip("-").split("=", 1) for option in commands(page, "mine")[2:])
    assert yaml.safe_load(options["model.methods"]) == {"mine": {"class_path": "headstart.modules.NearestClassMean"}}

"""Runs are scored again from their traces: under another criterion, and joined."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from headstart.evaluate import main
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.metrics.sample_efficiency.curves import Curves, required_correct, samples_to_criterion
from headstart.output.errors import UserError
from headstart.tests.material.runs import TRACES, seal, write_run

Fit = Callable[..., Path]


def score(runs: str | Path, output: Path, **criterion: Any) -> dict[str, Any]:
    sample_efficiency(str(runs), output=str(output), **criterion)
    document: dict[str, Any] = json.loads(output.read_text())
    return document


def samples_of(document: dict[str, Any]) -> list[list[int | None]]:
    return [scores["samples_to_criterion"] for scores in document["methods"].values()]


@pytest.mark.parametrize(
    ("criterion", "samples"),
    [
        ({}, [[4, 5], [3, 5]]),
        ({"threshold": 0.79}, [[4, 5], [3, 3]]),
        ({"threshold": 0.85}, [[7, None], [6, 8]]),
        ({"consecutive": 1}, [[2, 3], [1, 1]]),
        ({"consecutive": 7, "threshold": 0.8}, [[8, None], [7, None]]),
    ],
)
def test_another_criterion(tmp_path: Path, criterion: dict[str, Any], samples: list[list[int | None]]) -> None:
    document = score(write_run(tmp_path / "run"), tmp_path / "scores.json", **criterion)
    assert samples_of(document) == samples
    assert document["criterion"] == {"measure": "accuracy", "threshold": 0.8, "consecutive": 3, **criterion}


@pytest.mark.parametrize(
    ("criterion", "restricted_at"),
    [({}, 500), ({"threshold": 0.79}, 500), ({"threshold": 0.85}, 8), ({"consecutive": 7}, 8)],
)
def test_stricter_criterion_is_cut_where_the_run_stopped(
    tmp_path: Path, criterion: dict[str, Any], restricted_at: int
) -> None:
    document = score(write_run(tmp_path / "run"), tmp_path / "scores.json", **criterion)
    assert document["restricted_at"] == restricted_at
    expected = [np.mean([8 if s is None else s for s in row]) for row in samples_of(document)]
    assert [scores["restricted_mean"] for scores in document["methods"].values()] == expected


@pytest.mark.parametrize(
    ("limit", "step", "restricted_at"), [(32, 4, 32), (34, 4, 34), (36, 4, 32), (30, 4, 30), (37, 4, 32)]
)
def test_run_to_its_limit_is_cut_there(tmp_path: Path, limit: int, step: int, restricted_at: int) -> None:
    run = write_run(tmp_path / "run", limit=limit, step=step)
    assert score(run, tmp_path / "scores.json", threshold=0.95)["restricted_at"] == restricted_at


@pytest.mark.slow
def test_joined_runs_equal_the_run_of_all_orderings(fit: Fit, tmp_path: Path) -> None:
    whole = fit("--data.orderings=4", folder="whole")
    for part, first in (("part-a", 0), ("part-b", 2)):
        fit("--data.orderings=2", f"--data.first_ordering={first}", folder=part)
    joined = score(tmp_path / "part-*", tmp_path / "joined.json")
    alone = score(whole, tmp_path / "alone.json")
    for document in (joined, alone):
        document.pop("runs")
    assert joined["orderings"] == [0, 1, 2, 3]
    written = json.loads((whole / "results.json").read_text())
    for key in ("methods", "comparisons"):
        for document in (joined, alone, written):
            for scores in document[key].values():
                # Runs end by themselves, after which accuracies are not known.
                for name in ("accuracy_at", "key", "diverged_at"):
                    scores.pop(name, None)
        assert joined[key] == alone[key] == written[key]
    assert joined == alone


def test_order_of_the_runs_is_that_of_their_names(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a", first=4)
    write_run(tmp_path / "run-b", correct=TRACES[:, :1], first=0)
    document = score(tmp_path / "run-*", tmp_path / "scores.json")
    assert document["orderings"] == [4, 5, 0]
    assert samples_of(document) == [[4, 5, 4], [3, 5, 3]]
    assert document["protocol"]["orderings"] == 3


def refusal(runs: Path) -> str:
    with pytest.raises(UserError) as caught:
        sample_efficiency(str(runs))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_same_trace_twice(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a")
    write_run(tmp_path / "run-b", correct=TRACES[:, :, :5])
    document = score(tmp_path / "run-*", tmp_path / "scores.json")
    alone = score(tmp_path / "run-a", tmp_path / "alone.json")
    assert [document[key] for key in ("methods", "orderings")] == [alone[key] for key in ("methods", "orderings")]
    write_run(tmp_path / "run-c", first=1)
    assert "the trace of the method baseline in ordering 1 again, and differently" in refusal(tmp_path / "run-*")


@pytest.mark.parametrize("change", [{"batch_size": 8}, {"seed": 1}, {"weights": "random"}, {"precision": "bfloat16"}])
def test_different_protocols(tmp_path: Path, change: dict[str, Any]) -> None:
    write_run(tmp_path / "run-a")
    write_run(tmp_path / "run-b", first=2, **change)
    assert f"differs from '{tmp_path / 'run-a'}' in {next(iter(change))}" in refusal(tmp_path / "run-*")


def test_different_methods(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a")
    run = write_run(tmp_path / "run-b", first=2)
    curves = Curves.load(run / "curves.npz")
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["model"]["methods"]["yours"] = config["model"]["methods"].pop("mine")
    document = json.loads((run / "results.json").read_text())
    document["methods"]["yours"] = document["methods"].pop("mine")
    renamed = replace(curves, methods=["baseline", "yours"])
    seal(run, document, renamed, json.dumps(config).encode())
    assert "the method mine is in no run of the orderings [2, 3]" in refusal(tmp_path / "run-*")
    seal(run, curves=replace(renamed, orderings=np.arange(2)))
    document = score(tmp_path / "run-*", tmp_path / "scores.json")
    assert list(document["methods"]) == ["baseline", "mine", "yours"]
    assert samples_of(document) == [[4, 5], [3, 5], [3, 5]]


@pytest.mark.parametrize("missing", ["results.json", "curves.npz", "config.yaml"])
def test_folder_without_results(tmp_path: Path, missing: str) -> None:
    (write_run(tmp_path / "run") / missing).unlink()
    assert f"has no {missing}" in refusal(tmp_path / "run")


def test_other_settings_of_the_methods_or_the_criterion(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a")
    write_run(tmp_path / "run-b", first=2, rate=0.5)
    assert "in the method baseline; give one of them another name" in refusal(tmp_path / "run-*")
    curves = Curves.load(write_run(tmp_path / "other-b", first=2) / "curves.npz")
    seal(tmp_path / "other-b", curves=replace(curves, threshold=0.9))
    write_run(tmp_path / "other-a")
    assert "in threshold; only methods and orderings may differ" in refusal(tmp_path / "other-*")
    assert score(tmp_path / "other-*", tmp_path / "scores.json", threshold=0.85)["criterion"]["threshold"] == 0.85
    write_run(tmp_path / "more-a")
    write_run(tmp_path / "more-b", first=2, measure="balanced_accuracy")
    assert "in measure; only methods and orderings may differ" in refusal(tmp_path / "more-*")


@pytest.mark.parametrize("damaged", ["results.json", "curves.npz", "config.yaml"])
def test_damaged_files(tmp_path: Path, damaged: str) -> None:
    (write_run(tmp_path / "run") / damaged).write_text("{")
    assert "damaged" in refusal(tmp_path / "run")


def test_scores_of_another_criterion_are_not_replaced_unasked(tmp_path: Path) -> None:
    run, output = write_run(tmp_path / "run"), tmp_path / "made" / "scores.json"
    first = score(run, output)
    assert score(run, output) == first
    with pytest.raises(UserError, match=r"^output: '.*scores.json' holds something else; .*--overwrite=true"):
        score(run, output, threshold=0.79)
    assert json.loads(output.read_text()) == first
    assert score(run, output, threshold=0.79, overwrite=True) != first


@pytest.mark.parametrize("command", ["sample-efficiency", "performances"])
@pytest.mark.parametrize("output", ["", ".", "run", "new/", "/dev/null/file"])
def test_output_is_a_file(
    tmp_path: Path, output: str, command: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_run(tmp_path / "run").parent)
    assert "error: output: " in refused(lambda: main([command, "run", f"--output={output}"]))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_matches_of_a_pattern_that_are_no_runs_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write_run(tmp_path / "runs" / "one")
    (tmp_path / "runs" / "ledger").mkdir()
    (tmp_path / "runs" / "performances.csv").touch()
    document = score(tmp_path / "runs" / "*", tmp_path / "scores.json")
    assert document["runs"] == [str(tmp_path / "runs" / "one")]
    assert "has no results.json and no curves.npz and no config.yaml" in refusal(tmp_path / "runs" / "ledger")
    assert "matches no folder of a run" in refusal(tmp_path / "runs" / "[lp]*")
    (tmp_path / "runs" / "ledger" / "config.yaml").touch()
    document = score(tmp_path / "runs" / "*", tmp_path / "scores.json", overwrite=True)
    assert document["runs"] == [str(tmp_path / "runs" / "one")]
    assert "ledger' has no results.json and no curves.npz" in document["warnings"][0]


def test_nothing_there(tmp_path: Path) -> None:
    assert "matches no folder" in refusal(tmp_path / "absent-*")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    correct = generator.integers(70, 100, (2, 20, 60))
    write_run(tmp_path / "run", correct=correct, limit=60)
    options = ["--threshold=0.75", "--consecutive=5", f"--output={tmp_path / 'scores.json'}"]
    main(["sample-efficiency", str(tmp_path / "run"), *options])
    samples, _ = samples_to_criterion(correct, np.arange(1, 61), required_correct(0.75, 100), 5)
    document = json.loads((tmp_path / "scores.json").read_text())
    assert samples_of(document) == [[None if np.isinf(s) else s for s in row] for row in samples.tolist()]
    assert "75% validation accuracy at 5" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(("options", "code"), [(["--threshold=2"], 2), (["--consecutiv=x"], 2), ([], 1)])
def test_mistakes_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["sample-efficiency", str(tmp_path / "absent"), *options])
    assert caught.value.code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")


def test_warnings_of_the_runs_are_those_of_the_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos: dict[str, Any] = {"near_duplicate_photos": [["a.jpg", "b.jpg"]]}
    whole = write_run(tmp_path / "whole", **photos)
    cut = write_run(tmp_path / "cut", TRACES[..., :6], first=2, complete=False, **photos)
    document = sample_efficiency([str(whole), str(cut)], output=str(tmp_path / "scores.json"))
    assert f"{str(cut)!r} is incomplete, cut off at 6 of 500 samples (it was interrupted)." in document["warnings"]
    assert sum(warning.endswith("a.jpg ~ b.jpg.") for warning in document["warnings"]) == 1
    assert json.loads((tmp_path / "scores.json").read_text())["warnings"] == document["warnings"]
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"WARNING: {warning}" in printed for warning in document["warnings"])

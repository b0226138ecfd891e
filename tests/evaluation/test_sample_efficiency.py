"""Runs are scored again from their traces: under another criterion, and joined."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

from headstart.evaluate import main
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.metrics.sample_efficiency.curves import required_correct, samples_to_criterion
from headstart.output.errors import UserError
from headstart.tests.material.runs import TRACES, write_run

Fit = Callable[..., Path]


def score(runs: str | Path, output: Path, **criterion: Any) -> dict[str, Any]:
    sample_efficiency(str(runs), output=str(output), **criterion)
    document: dict[str, Any] = json.loads(output.read_text())
    return document


def samples_of(document: dict[str, Any]) -> list[list[int | None]]:
    return [scores["samples_to_criterion"] for scores in document["methods"].values()]


# A criterion, samples to it by method, and where means are cut: a stricter one where the run stopped.
CRITERIA: list[tuple[dict[str, Any], list[list[int | None]], int]] = [
    ({}, [[4, 5], [3, 5]], 500),
    ({"threshold": 0.79}, [[4, 5], [3, 3]], 500),
    ({"threshold": 0.85}, [[7, None], [6, 8]], 8),
    ({"consecutive": 1}, [[2, 3], [1, 1]], 500),
    ({"consecutive": 7, "threshold": 0.8}, [[8, None], [7, None]], 8),
]


def test_another_criterion(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for criterion, samples, restricted_at in CRITERIA:
        document = score(run, tmp_path / "scores.json", **criterion, overwrite=True)
        assert (samples_of(document), document["restricted_at"]) == (samples, restricted_at)
        assert document["criterion"] == {"measure": "accuracy", "threshold": 0.8, "consecutive": 3, **criterion}
        expected = [np.mean([8 if s is None else s for s in row]) for row in samples]
        assert [scores["restricted_mean"] for scores in document["methods"].values()] == expected


def test_run_to_its_limit_is_cut_there(tmp_path: Path) -> None:
    for limit, is_known in ((32, True), (34, True), (36, False), (30, True), (37, False)):
        run = write_run(tmp_path / str(limit), limit=limit, step=4)
        if is_known:
            assert score(run, tmp_path / f"{limit}.json", threshold=0.95)["restricted_at"] == limit
        else:
            assert "nothing is known of 0.95 at 3 evaluations behind 32 samples" in refusal(run, threshold=0.95)


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


def refusal(runs: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        sample_efficiency(str(runs), **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_runs_that_differ_in_more_than_methods_and_orderings_are_chosen_by_where(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a")
    changes: dict[str, Any] = {
        "batch_size": {"step": 8},
        "weights": {"weights": "random"},
        "threshold": {"threshold": 0.9},
    }
    for name, change in changes.items():
        write_run(tmp_path / "run-b", first=2, **change)
        message = refusal(tmp_path / "run-*")
        assert message.startswith("runs: 2 settings, which differ in ")
        assert f"{name} (" in message
        assert "choose one by --where" in message
        rmtree(tmp_path / "run-b")
    write_run(tmp_path / "run-b", threshold=0.9)
    assert sample_efficiency(str(tmp_path / "run-*"), where={"threshold": 0.9})["runs"] == [str(tmp_path / "run-b")]
    assert sample_efficiency(str(tmp_path / "run-*"), threshold=0.85)["criterion"]["threshold"] == 0.85


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


def test_warnings_of_the_runs_are_those_of_the_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos: dict[str, Any] = {"near_duplicate_photos": [["a.jpg", "b.jpg"]]}
    whole = write_run(tmp_path / "whole", **photos)
    cut = write_run(tmp_path / "cut", TRACES[..., :6], first=2, complete=False, **photos)
    document = sample_efficiency([str(whole), str(cut)], output=str(tmp_path / "scores.json"))
    assert (
        f"{str(cut)!r} is incomplete, cut off at 6 of 500 samples (it was interrupted), and included."
        in document["warnings"]
    )
    assert sum(warning.endswith("a.jpg ~ b.jpg.") for warning in document["warnings"]) == 1
    assert json.loads((tmp_path / "scores.json").read_text())["warnings"] == document["warnings"]
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"WARNING: {warning}" in printed for warning in document["warnings"])

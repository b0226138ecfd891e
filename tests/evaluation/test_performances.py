"""Performances of sources on targets from runs, checked by hand, and what other commands make of them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import evaluate
from headstart.evaluation.performances import performances
from headstart.output.errors import UserError
from headstart.tests.material.runs import TRACES, seal, write_run

Fit = Callable[..., Path]
WEIGHTS = {"a": "somewhere/first.safetensors", "b": "random"}
SOURCES = {"a": "first", "b": "resnet50_random"}


def read(path: Path) -> dict[tuple[str, str], float]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(list(row) == ["source", "target", "performance", "warning"] for row in rows)
    values = {(row["source"], row["target"]): float(row["performance"]) for row in rows}
    assert len(values) == len(rows)
    return values


def tabulate(runs: str | Path | list[str], output: Path, **options: Any) -> dict[tuple[str, str], float]:
    performances(runs if isinstance(runs, list) else str(runs), output=str(output), **options)
    return read(output)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs of two sources on two targets; source b is 10 points worse, and worse by another 20 on farms."""
    for source, weights in WEIGHTS.items():
        for target, worse in (("pets", 0), ("farms", 20)):
            correct = TRACES - (source == "b") * (10 + worse)
            digest: dict[str, Any] = {"weights": weights, "weights_sha256": source}
            write_run(tmp_path / f"{source}-{target}", correct, limit=8, dataset=target, **digest)
    return tmp_path / "*-*"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"a": (0.875, 0.875), "b": (0.775, 0.575)}),
        ({"samples": 5}, {"a": (0.825, 0.825), "b": (0.725, 0.525)}),
        ({"samples": 5, "method": "mine"}, {"a": (0.85, 0.85), "b": (0.75, 0.55)}),
        ({"performance": "final", "method": "mine"}, {"a": (0.9, 0.9), "b": (0.8, 0.6)}),
        # a: 4 and 5 of 8 samples; b: never by the baseline, after 6 and 8 by the other method on pets.
        ({"performance": "samples_to_criterion"}, {"a": (3.5, 3.5), "b": (0, 0)}),
        ({"performance": "samples_to_criterion", "method": "mine"}, {"a": (4, 4), "b": (1, 0)}),
    ],
)
def test_a_performance_is_the_mean_over_orderings(
    runs: Path, tmp_path: Path, options: dict[str, Any], expected: dict[str, tuple[float, float]]
) -> None:
    result = tabulate(runs, tmp_path / "out" / "performances.csv", **options)
    by_source = {source: (result[name, "pets"], result[name, "farms"]) for source, name in SOURCES.items()}
    assert by_source == {source: pytest.approx(values) for source, values in expected.items()}
    assert len(result) == 4


def test_censored_orderings_and_different_ends_are_reported(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tabulate(runs, tmp_path / "performances.csv", performance="samples_to_criterion")
    assert "4 orderings did not meet the criterion by 8 samples, and count as 0." in capsys.readouterr().out
    tabulate(runs, tmp_path / "others.csv", performance="samples_to_criterion", method="mine")
    assert "2 orderings did not" in capsys.readouterr().out
    write_run(tmp_path / "a-birds", TRACES[..., :6], limit=8, dataset="birds", weights="first.pth", weights_sha256="a")
    tabulate(runs, tmp_path / "final.csv", performance="final")
    assert "The runs ended after 6 to 8 samples: " in capsys.readouterr().out
    result = tabulate(runs, tmp_path / "fed.csv")
    assert "accuracy of baseline after 6 samples" in capsys.readouterr().out
    assert result["first", "pets"] == pytest.approx(0.825)


def test_between_two_evaluations_the_last_one_counts(tmp_path: Path) -> None:
    write_run(tmp_path / "run", step=4, limit=32)
    results = [tabulate(tmp_path / "run", tmp_path / f"{at}.csv", samples=at) for at in (8, 11, 12)]
    assert [values["resnet50", "pets"] for values in results] == pytest.approx([0.7, 0.7, 0.8])
    for at in (3, 33):
        with pytest.raises(UserError, match=f"samples: {at} given, but .* from 4 to 32 samples"):
            tabulate(tmp_path / "run", tmp_path / "no.csv", samples=at)
    assert not (tmp_path / "no.csv").exists()


def test_runs_of_other_orderings_are_joined(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a", TRACES[:, :1])
    write_run(tmp_path / "run-b", TRACES[:, 1:], first=1)
    write_run(tmp_path / "whole")
    joined, whole = (tabulate(tmp_path / name, tmp_path / f"{name[0]}.csv", samples=8) for name in ("run-*", "whole"))
    assert joined == whole
    as_list = tabulate([str(tmp_path / f"run-{part}") for part in "ab"], tmp_path / "list.csv", samples=8)
    assert as_list == whole


def test_sources_are_named_by_their_weights_or_their_entry(tmp_path: Path) -> None:
    named: dict[str, dict[str, Any]] = {
        "vit_tiny": {"weights": "DEFAULT", "backbone": "timm/vit_tiny"},
        "best.model": {"weights": "/far/away/best.model.pth"},
        "resnet50_IMAGENET1K_V1": {"weights": "IMAGENET1K_V1"},
        "mobilenet_v2_embedded": {"weights": "embedded", "backbone": "mobilenet_v2"},
        "mine": {"weights": "x.safetensors", "backbone": "mine", "registry": "registry.json"},
    }
    for source, protocol in named.items():
        write_run(tmp_path / f"run-{source}", **protocol)
    assert set(tabulate(tmp_path / "run-*", tmp_path / "out.csv")) == {(source, "pets") for source in named}
    renamed = tabulate(tmp_path / "run-mine", tmp_path / "named.csv", names={"mine": "other", "pets": "animals"})
    assert list(renamed) == [("other", "animals")]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {"batch_size": 2},
            {},
            "runs: resnet50 on farms in '{}/run-b' differs from a on pets in '{}/run-a' in batch_size (2, 1); "
            "only sources, targets and orderings may differ",
        ),
        ({"rate": 0.5}, {}, "in baseline."),
        ({"threshold": 0.7}, {"performance": "samples_to_criterion"}, "in threshold (0.7, "),
        ({"seed": 7, "dataset": "pets"}, {}, "in seed (7, 0); both are of the target pets"),
        ({"weights": "a.pth", "weights_sha256": "other"}, {}, "in weights_sha256 (other, "),
        ({"weights": "a.pth", "dataset": "pets", "first": 2, "torch": "x"}, {}, "in torch (x, "),
        ({"weights": "a.pth", "dataset": "pets", "correct": TRACES - 1}, {}, "ordering 0 of a on pets again, and"),
        ({"complete": False}, {}, "'{}/run-b' is incomplete (it was interrupted); leave it out"),
        ({}, {"method": "yours"}, "method: 'yours' is not in '{}/run-a', which has baseline, mine"),
        ({}, {"names": {"c": "d"}}, "names: c given, but the runs are of a, farms, pets, resnet50"),
        ({}, {"performance": "final", "samples": 3}, "samples: 3 given, which belong to --performance=accuracy"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    tmp_path: Path, change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    write_run(tmp_path / "run-a", weights="a.pth")
    write_run(tmp_path / "run-b", **{"dataset": "farms", **change})
    with pytest.raises(UserError) as error:
        tabulate(tmp_path / "run-*", tmp_path / "out" / "performances.csv", **options)
    assert message.format(tmp_path, tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", [{"limit": 400}, {"threshold": 0.7}, {"validation_size": 7}, {"rate": 0.5}])
def test_irrelevant_settings_may_differ(tmp_path: Path, change: dict[str, Any]) -> None:
    write_run(tmp_path / "run-a", weights="a.pth")
    write_run(tmp_path / "run-b", dataset="farms", **change)
    method = "mine" if "rate" in change else "baseline"
    assert len(tabulate(tmp_path / "run-*", tmp_path / "out.csv", method=method)) == 2


def test_another_table_is_not_replaced_unasked(runs: Path, tmp_path: Path) -> None:
    table = tmp_path / "performances.csv"
    first = tabulate(runs, table)
    assert tabulate(runs, table) == first
    with pytest.raises(UserError, match=r"holds something else; .*--overwrite=true"):
        tabulate(runs, table, samples=2)
    assert read(table) == first
    assert tabulate(runs, table, samples=2, overwrite=True) != first


def test_mistakes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in (([str(tmp_path / "absent")], 1), ([], 2), ([str(tmp_path), "--performance=best"], 2)):
        with pytest.raises(SystemExit) as end:
            evaluate.main(["performances", *arguments])
        assert end.value.code == code
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")


@pytest.mark.slow
def test_real_runs_are_tabulated(fit: Fit, photo_folder: Path, tmp_path: Path) -> None:
    backbones: dict[str, dict[str, Any]] = {"mobilenet_v2": {"width_mult": 0.25}, "shufflenet_v2_x0_5": {}}
    for backbone, arguments in backbones.items():
        options = [f"--data.backbone.name={backbone}", f"--data.backbone.model_args={json.dumps(arguments)}"]
        fit(*options, "--data.batch_size=8", "--criterion.consecutive=1", folder=f"run-{backbone}")
    names = json.dumps({"mobilenet_v2_random": "narrow"})
    table = tmp_path / "performances.csv"
    evaluate.main(["performances", str(tmp_path / "run-*"), f"--names={names}", f"--output={table}"])
    assert set(read(table)) == {("narrow", "pictures"), ("shufflenet_v2_x0_5_random", "pictures")}
    curves = np.load(tmp_path / "run-mobilenet_v2" / "curves.npz")
    last = min(int(np.load(run / "curves.npz")["samples_seen"][-1]) for run in tmp_path.glob("run-*"))
    [index] = np.flatnonzero(curves["samples_seen"] == last)
    expected = (curves["correct"][0, :, index] / curves["validation_size"]).mean()
    assert read(table)["narrow", "pictures"] == pytest.approx(expected)


def test_warnings_of_the_runs_stand_below_the_table(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((tmp_path / "a-pets" / "results.json").read_text())
    document["protocol"]["near_duplicate_photos"] = [["train/1.jpg", "validation/2.jpg"]]
    seal(tmp_path / "a-pets", document)
    tabulate(runs, tmp_path / "table.csv")
    warning = "WARNING: 1 validation photos look like a training photo: accuracies may be too high: train/1.jpg ~"
    assert warning.replace("WARNING: ", "WARNING: first on pets: ") in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "table.csv").open(newline="") as file:
        warnings = {(row["source"], row["target"]): row["warning"] for row in csv.DictReader(file)}
    assert [pair for pair, its in warnings.items() if its] == [("first", "pets")]

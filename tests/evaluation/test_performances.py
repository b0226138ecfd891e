"""Performances of sources on targets, from runs of comparisons and of fine-tuning."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headstart import evaluate
from headstart.evaluation.performances import performances
from headstart.output.errors import UserError
from headstart.store.json_digest import sealed
from headstart.tests.material.runs import TRACES, seal, write_run

WEIGHTS = {"a": "somewhere/first.safetensors", "b": "random"}
SOURCES = {"a": "first", "b": "resnet50_random"}


def read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, keep_default_na=False).set_index(["source", "target"])
    assert list(table) == ["performance", "warning"]
    assert table.index.is_unique
    return table


def tabulate(runs: str | Path | list[str], output: Path, **options: Any) -> dict[tuple[str, str], float]:
    table = performances(runs if isinstance(runs, list) else str(runs), output=str(output), overwrite=True, **options)
    assert read(output)["performance"].to_dict() == pytest.approx(table)
    return table


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs of two sources on two targets; source b is 10 points worse, and worse by another 20 on farms."""
    for source, weights in WEIGHTS.items():
        for target, worse in (("pets", 0), ("farms", 20)):
            correct = TRACES - (source == "b") * (10 + worse)
            digest: dict[str, Any] = {"weights": weights, "weights_sha256": source}
            write_run(tmp_path / f"{source}-{target}", correct, limit=8, dataset=target, **digest)
    return tmp_path / "*-*"


# Options, and the performances of sources a and b on pets and on farms.
TABULATED: list[tuple[dict[str, Any], list[float]]] = [
    ({}, [0.875, 0.875, 0.775, 0.575]),
    ({"samples": 5}, [0.825, 0.825, 0.725, 0.525]),
    ({"samples": 5, "method": "mine"}, [0.85, 0.85, 0.75, 0.55]),
    # a: 4 and 5 of 8 samples; b: never by the baseline, after 6 and 8 by the other method on pets.
    ({"performance": "samples_to_criterion"}, [3.5, 3.5, 0, 0]),
    ({"performance": "samples_to_criterion", "method": "mine"}, [4, 4, 1, 0]),
]


def test_a_performance_is_the_mean_over_orderings(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(source, target) for source in SOURCES.values() for target in ("pets", "farms")]
    for options, expected in TABULATED:
        result = tabulate(runs, tmp_path / "out" / "performances.csv", **options)
        assert result == pytest.approx(dict(zip(pairs, expected, strict=True))), options
    printed = capsys.readouterr().out
    assert "4 orderings did not meet the criterion by 8 samples, and count as 0." in printed
    assert "2 orderings did not" in printed
    # By default as many samples count as all runs have fed.
    write_run(tmp_path / "a-birds", TRACES[..., :6], limit=8, dataset="birds", weights="first.pth", weights_sha256="a")
    assert tabulate(runs, tmp_path / "fed.csv")["first", "pets"] == pytest.approx(0.825)
    assert "accuracy of baseline after 6 samples" in capsys.readouterr().out


def test_between_two_evaluations_the_last_one_counts(tmp_path: Path) -> None:
    write_run(tmp_path / "run", step=4, limit=32)
    results = [tabulate(tmp_path / "run", tmp_path / f"{at}.csv", samples=at) for at in (8, 11, 12)]
    assert [values["resnet50", "pets"] for values in results] == pytest.approx([0.7, 0.7, 0.8])
    for at in (3, 33):
        with pytest.raises(UserError, match=f"samples: {at} given, but .* from 4 to 32 samples"):
            tabulate(tmp_path / "run", tmp_path / "no.csv", samples=at)


def test_runs_of_other_orderings_are_joined(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a", TRACES[:, :1])
    write_run(tmp_path / "run-b", TRACES[:, 1:], first=1)
    write_run(tmp_path / "whole")
    joined, whole = (tabulate(tmp_path / name, tmp_path / f"{name[0]}.csv", samples=8) for name in ("run-*", "whole"))
    assert joined == whole
    assert tabulate([str(tmp_path / f"run-{part}") for part in "ab"], tmp_path / "list.csv", samples=8) == whole


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
    names = {"mine": "other", "pets": "animals"}
    assert list(tabulate(tmp_path / "run-mine", tmp_path / "named.csv", names=names)) == [("other", "animals")]


FILE: dict[str, Any] = {"weights": "a.pth"}
# What is different of the second run, options, and what the message has.
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"batch_size": 2},
        {},
        "runs: resnet50 on farms in '{0}/run-b' differs from a on pets in '{0}/run-a' in batch_size (2, 1); only "
        "sources, targets and orderings may differ",
    ),
    ({"rate": 0.5}, {}, "in baseline."),
    ({"threshold": 0.7}, {"performance": "samples_to_criterion"}, "in threshold (0.7, "),
    ({"seed": 7, "dataset": "pets"}, {}, "in seed (7, 0); both are of the target pets"),
    ({**FILE, "weights_sha256": "other"}, {}, "in weights_sha256 (other, "),
    ({**FILE, "dataset": "pets", "first": 2, "torch": "x"}, {}, "in torch (x, "),
    ({**FILE, "dataset": "pets", "correct": TRACES - 1}, {}, "ordering 0 of a on pets again, and"),
    ({"complete": False}, {}, "'{0}/run-b' is incomplete (it was interrupted); leave it out"),
    ({}, {"method": "yours"}, "method: 'yours' is not in '{0}/run-a', which has baseline, mine"),
    ({}, {"names": {"c": "d"}}, "names: c given, but the runs are of a, farms, pets, resnet50"),
    (
        {},
        {"performance": "samples_to_criterion", "samples": 3},
        "samples: 3 given, which belong to --performance=accuracy",
    ),
]


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a", **FILE)
    wrong = []
    for change, options, message in REFUSED:
        write_run(tmp_path / "run-b", **{"dataset": "farms", **change})
        with pytest.raises(UserError) as error:
            tabulate(tmp_path / "run-*", tmp_path / "out" / "performances.csv", **options)
        if message.format(tmp_path) not in str(error.value) or "\n" in str(error.value):
            wrong.append((change, options, str(error.value)))
        shutil.rmtree(tmp_path / "run-b")
    assert wrong == []
    assert not (tmp_path / "out").exists()


def test_irrelevant_settings_may_differ(tmp_path: Path) -> None:
    write_run(tmp_path / "run-a", **FILE)
    changes: list[dict[str, Any]] = [{"limit": 400}, {"threshold": 0.7}, {"validation_size": 7}, {"rate": 0.5}]
    for change in changes:
        write_run(tmp_path / "run-b", dataset="farms", **change)
        method = "mine" if "rate" in change else "baseline"
        assert len(tabulate(tmp_path / "run-*", tmp_path / "out.csv", method=method)) == 2, change
        shutil.rmtree(tmp_path / "run-b")


def test_another_table_is_not_replaced_unasked(runs: Path, tmp_path: Path) -> None:
    first = tabulate(runs, tmp_path / "table.csv")
    evaluate.main(["performances", str(runs), f"--output={tmp_path / 'table.csv'}"])
    with pytest.raises(UserError, match=r"holds something else; .*--overwrite=true"):
        performances(str(runs), output=str(tmp_path / "table.csv"), samples=2)
    assert read(tmp_path / "table.csv")["performance"].to_dict() == pytest.approx(first)


def test_warnings_of_the_runs_stand_below_the_table(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((tmp_path / "a-pets" / "results.json").read_text())
    document["protocol"]["near_duplicate_photos"] = [["train/1.jpg", "validation/2.jpg"]]
    seal(tmp_path / "a-pets", document)
    tabulate(runs, tmp_path / "table.csv")
    warning = "WARNING: 1 validation photos look like a training photo: accuracies may be too high: train/1.jpg ~"
    assert warning.replace("WARNING: ", "WARNING: first on pets: ") in " ".join(capsys.readouterr().out.split())
    warnings = read(tmp_path / "table.csv")["warning"]
    assert list(warnings[warnings != ""].index) == [("first", "pets")]


VALIDATED = 50
SCORES = {
    ("first", "pets"): [40, 44],
    ("first", "farms"): [30, 31],
    ("mine", "pets"): [20, 25],
    ("mine", "farms"): [45, 50],
}
EXPECTED = pytest.approx({pair: np.mean(counts) / VALIDATED for pair, counts in SCORES.items()})
BACKBONES = {"first": ("resnet50", "somewhere/first.safetensors", None), "mine": ("mine", "random", "registry.json")}


def write(
    folder: Path,
    pair: tuple[str, str],
    counts: dict[int, int],
    trained: str = "all",
    only_classes: Sequence[str | None] = (),
    **change: Any,
) -> None:
    """Write the results of fine-tuning a source on a target, with counts of correct predictions by ordering."""
    source, target = pair
    stream = {
        "task": "target_accuracy",
        "network": source,
        "batch_size": 8,
        "selection_share": 0.0,
    }
    stream |= {f"{split}_photos_sha256": f"{split} of {target}" for split in ("train", "validation")}
    training = {"class": "TargetAccuracy", "hyperparameters": {"trained": trained}, "trainer": {"max_epochs": 3}}
    names = dict(zip(("backbone", "weights", "registry"), BACKBONES[source], strict=True))
    document: dict[str, Any] = {
        **{"schema": 1, "task": "target_accuracy", "complete": True, "protocol": {**names, "dataset": target}},
        "accuracies": [count / VALIDATED for count in counts.values()],
        "key": {
            "stream": {**stream, "trainable_from": "all", **change},
            "method": training,
            "orderings": list(counts),
        },
        "only_classes": list(only_classes) or [None] * len(counts),
    }
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(sealed(document, {})))


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the results of fine-tuning into the folder `runs`, beside which a test writes tables."""
    monkeypatch.chdir(tmp_path)
    for pair, counts in SCORES.items():
        write(Path("runs", "-".join(pair)), pair, dict(enumerate(counts)))
    return Path("runs")


def refuse(message: str, *runs: str, **options: Any) -> None:
    with pytest.raises(UserError, match=message):
        performances(list(runs), output="no.csv", **options)
    assert not Path("no.csv").exists()


@pytest.mark.usefixtures("tuned")
def test_a_performance_of_fine_tuning_is_the_mean_over_orderings(capsys: pytest.CaptureFixture[str]) -> None:
    assert tabulate("runs/*", Path("table.csv")) == EXPECTED
    assert "the whole network fine-tuned" in " ".join(capsys.readouterr().out.split())
    named = performances("runs/*", names={"mine": "ours"}, output="named.csv")
    assert {source for source, _ in named} == {"first", "ours"}


def test_networks_that_predict_one_class_alone_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("run-a"), ("first", "pets"), {0: 25, 1: 30}, only_classes=["dogs", None])
    write(Path("run-b"), ("first", "pets"), {0: 25, 2: 20}, only_classes=["dogs", None])
    assert performances("run-*", output="table.csv") == pytest.approx({("first", "pets"): 0.5})
    expected = "predicts 'dogs' for all validation photos in 1 of 3 orderings."
    assert read(Path("table.csv"))["warning"].tolist() == [expected]
    assert f"WARNING: first on pets: {expected}" in " ".join(capsys.readouterr().out.split())


def test_whole_network_and_head_are_two_tables(tuned: Path) -> None:
    write(tuned / "head", ("first", "pets"), {0: 50}, trained="head")
    refuse(r"trained: accuracies of all \(first on farms in .*\) and of head \(first on pets in .*\) are", "runs/*")
    assert performances("runs/*", trained="head", output="head.csv") == {("first", "pets"): 1.0}
    assert performances("runs/*", trained="all", output="all.csv") == EXPECTED


def test_accuracies_that_cannot_be_compared_are_refused(tuned: Path) -> None:
    mistakes: list[tuple[tuple[str, str], dict[str, Any], str]] = [
        (("first", "birds"), {"batch_size": 4}, r"in batch_size \(4, 8\); give runs of one recipe"),
        (("first", "birds"), {"seed": 4}, r"in seed \(4, –\); only sources, targets and orderings"),
        (("first", "pets"), {"network": "other"}, r"in network \(other, first\); both are of the source first"),
        (("mine", "pets"), {"train_photos_sha256": "x"}, r"photos_sha256 \(x, .*; both are of the target pets"),
        (("mine", "pets"), {}, "holds ordering 1 of mine on pets again, and differently"),
    ]
    for pair, change, message in mistakes:
        write(tuned / "other", pair, {2 if change else 1: 1}, **change)
        refuse(message, "runs/*")
        shutil.rmtree(tuned / "other")

    refuse("runs: they are of fine-tuning, which has no --performance", "runs/*", samples=5)
    refuse("names: nobody given, but the runs are of farms, first, mine", "runs/*", names={"nobody": "x"})
    refuse("runs: no accuracy of head is in what is given; they are of all", "runs/*", trained="head")


def test_kinds_of_runs_are_not_mixed(tuned: Path) -> None:
    write_run(Path("comparison"))
    refuse("are a comparison and fine-tuning; give runs of one kind", "comparison", "runs/*")
    refuse("trained: all given, but the runs are comparisons", "comparison", trained="all")
    for document, message in (
        ({"task": "source_training"}, "is of source_training, which has no performance"),
        ({"schema": 3, "task": "target_accuracy"}, "has schema 3, but this version of Headstart reads schema 1; make"),
    ):
        (tuned / "mine-pets" / "results.json").write_text(json.dumps(sealed(document, {})))
        refuse(message, "runs/*")
    text = (tuned / "first-pets" / "results.json").read_text()
    (tuned / "first-pets" / "results.json").write_text(text.replace("pets", "vets", 1))
    refuse(r"the files in '.*first-pets' are damaged", "runs/first-pets")

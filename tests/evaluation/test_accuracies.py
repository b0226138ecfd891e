"""Tables of fine-tuned sources, from runs and from a ledger."""

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.performances import performances
from headstart.output.errors import UserError
from headstart.store.accuracy_traces import PhotoCounts
from headstart.store.json_digest import sealed
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import TraceKey
from headstart.tests.material.runs import write_run

VALIDATED = 50
SCORES = {
    ("first", "pets"): [40, 44],
    ("first", "farms"): [30, 31],
    ("mine", "pets"): [20, 25],
    ("mine", "farms"): [45, 50],
}
WEIGHTS = {"first": ("resnet50", "somewhere/first.safetensors", None), "mine": ("mine", "random", "registry.json")}


def documents(source: str, target: str, trained: str, **fed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    training = {"class": "TargetAccuracy", "hyperparameters": {"trained": trained}, "trainer": {"max_epochs": 3}}
    of_target = {f"{split}_photos_sha256": f"{split} of {target}" for split in ("train", "validation")}
    plain = {"task": "target_accuracy", **of_target, "network": source, "preprocessing": {}, "batch_size": 8}
    return {**plain, "trainable_from": "all", "selection_share": 0.0, **fed}, training


def protocol(source: str, target: str) -> dict[str, Any]:
    backbone, weights, registry = WEIGHTS[source]
    return {
        **{"dataset": target, "backbone": backbone, "weights": weights, "registry": registry},
        "validation_size": VALIDATED,
    }


def write(
    folder: Path,
    pair: tuple[str, str],
    counts: dict[int, int],
    trained: str = "all",
    only_classes: Sequence[str | None] = (),
    **change: Any,
) -> None:
    fed, training = documents(*pair, trained, **change)
    document = {
        "schema": 1,
        "task": "target_accuracy",
        "complete": True,
        "accuracies": [count / VALIDATED for count in counts.values()],
        "protocol": protocol(*pair),
        "key": {"stream": fed, "method": training, "orderings": list(counts)},
        "only_classes": list(only_classes) or [None] * len(counts),
    }
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(sealed(document, {})))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for pair, counts in SCORES.items():
        write(tmp_path / "runs" / "-".join(pair), pair, dict(enumerate(counts)))
    return tmp_path / "runs"


def read(path: Path) -> dict[tuple[str, str], float]:
    with path.open(newline="") as file:
        return {(row["source"], row["target"]): float(row["performance"]) for row in csv.DictReader(file)}


EXPECTED = {pair: np.mean(counts) / VALIDATED for pair, counts in SCORES.items()}


def test_a_performance_is_the_mean_over_orderings(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = performances(str(runs / "*"), output=str(tmp_path / "table.csv"))
    assert summary == read(tmp_path / "table.csv") == pytest.approx(EXPECTED)
    assert "the whole network fine-tuned" in " ".join(capsys.readouterr().out.split())
    named = performances(str(runs / "*"), names={"mine": "ours"}, output=str(tmp_path / "named.csv"))
    assert {source for source, _ in named} == {"first", "ours"}


def test_a_ledger_gives_the_same_table_and_counts_once_beside_runs(runs: Path, tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        for pair, counts in SCORES.items():
            fed, training = documents(*pair, "all")
            stream, method = ledger.record(fed, description=protocol(*pair)), ledger.record(training)
            ledger.write({TraceKey(stream, method, k): PhotoCounts(count).trace() for k, count in enumerate(counts)})
    alone = performances(str(tmp_path / "ledger"), output=str(tmp_path / "a.csv"))
    assert alone == pytest.approx(EXPECTED)
    both = performances([str(tmp_path / "ledger"), str(runs / "*")], output=str(tmp_path / "b.csv"))
    assert both == alone


def test_networks_that_predict_one_class_alone_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed, training = documents("first", "pets", "all")
    described = {**protocol("first", "pets"), "classes": ["cats", "dogs"]}
    with Ledger(tmp_path / "ledger") as ledger:
        stream, method = ledger.record(fed, description=described), ledger.record(training)
        counted = [PhotoCounts(25, 1).trace(), PhotoCounts(30).trace(), PhotoCounts(20).trace()]
        ledger.write({TraceKey(stream, method, k): trace for k, trace in enumerate(counted)})
    write(tmp_path / "run", ("first", "pets"), {0: 25}, only_classes=["dogs"])
    expected = "predicts 'dogs' for all validation photos in 1 of 3 orderings."
    for runs in ([str(tmp_path / "ledger")], [str(tmp_path / "ledger"), str(tmp_path / "run")]):
        table = performances(runs, output=str(tmp_path / "table.csv"))
        assert table == pytest.approx({("first", "pets"): 0.5})
        with (tmp_path / "table.csv").open(newline="") as file:
            assert [row["warning"] for row in csv.DictReader(file)] == [expected]
        assert f"WARNING: first on pets: {expected}" in " ".join(capsys.readouterr().out.split())


def test_whole_network_and_head_are_two_tables(runs: Path, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "head", ("first", "pets"), {0: 50}, trained="head")
    with pytest.raises(
        UserError,
        match=r"trained: accuracies of all \(first on farms in .*\) and of head \(first on pets in .*\) are",
    ):
        performances(str(runs / "*"), output=str(tmp_path / "x.csv"))
    head = performances(str(runs / "*"), trained="head", output=str(tmp_path / "head.csv"))
    assert head == {("first", "pets"): 1.0}
    assert performances(str(runs / "*"), trained="all", output=str(tmp_path / "all.csv")) == pytest.approx(EXPECTED)


def test_accuracies_that_cannot_be_compared_are_refused(runs: Path, tmp_path: Path) -> None:
    mistakes: list[tuple[tuple[str, str], dict[str, Any], str]] = [
        (("first", "birds"), {"batch_size": 4}, r"in batch_size \(4, 8\); give runs of one recipe"),
        (("first", "birds"), {"seed": 4}, r"in seed \(4, –\); only sources, targets and orderings"),
        (("first", "pets"), {"network": "other"}, r"in network \(other, first\); both are of the source first"),
        (
            ("mine", "pets"),
            {"train_photos_sha256": "x"},
            r"in train_photos_sha256 \(x, .*; both are of the target pets",
        ),
        (("mine", "pets"), {}, "holds ordering 1 of mine on pets again, and differently"),
    ]
    for pair, change, message in mistakes:
        write(runs / "other", pair, {2 if change else 1: 1}, **change)
        with pytest.raises(UserError, match=message):
            performances([str(runs / "*")], output=str(tmp_path / "x.csv"))
        shutil.rmtree(runs / "other")
    options: list[tuple[dict[str, Any], str]] = [
        ({"samples": 5}, "runs: they are of fine-tuning, which has no --performance"),
        ({"performance": "final"}, "runs: they are of fine-tuning"),
        ({"method": "mine"}, "runs: they are of fine-tuning"),
        ({"names": {"nobody": "x"}}, "names: nobody given, but the runs are of farms, first, mine, pets"),
        ({"trained": "head"}, "runs: no accuracy of head is in what is given; they are of all"),
    ]
    for given, message in options:
        with pytest.raises(UserError, match=message):
            performances(str(runs / "*"), output=str(tmp_path / "x.csv"), **given)
    assert not (tmp_path / "x.csv").exists()


def test_kinds_of_runs_are_not_mixed(runs: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "comparison")
    with pytest.raises(UserError, match="are a comparison and fine-tuning; give runs of one kind"):
        performances([str(tmp_path / "comparison"), str(runs / "*")], output=str(tmp_path / "x.csv"))
    with pytest.raises(UserError, match="trained: all given, but the runs are comparisons"):
        performances(str(tmp_path / "comparison"), trained="all", output=str(tmp_path / "x.csv"))
    (runs / "mine-pets" / "results.json").write_text(json.dumps(sealed({"task": "source_training"}, {})))
    with pytest.raises(UserError, match="is of source_training, which has no performance"):
        performances(str(runs / "*"), output=str(tmp_path / "x.csv"))
    (runs / "mine-pets" / "results.json").write_text(json.dumps(sealed({"schema": 3, "task": "target_accuracy"}, {})))
    with pytest.raises(UserError, match=r"has schema 3, but this version of Headstart reads schema 1; make it again"):
        performances(str(runs / "*"), output=str(tmp_path / "x.csv"))
    text = (runs / "first-pets" / "results.json").read_text()
    (runs / "first-pets" / "results.json").write_text(text.replace("pets", "vets", 1))
    with pytest.raises(UserError, match=r"the files in '.*first-pets' are damaged"):
        performances(str(runs / "first-pets"), output=str(tmp_path / "x.csv"))

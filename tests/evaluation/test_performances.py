"""Performances of sources on targets, from runs of fine-tuning."""

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
from headstart.evaluation.transfer_results import name_source
from headstart.output.errors import UserError
from headstart.store.json_digest import sealed
from headstart.tests.material.runs import write_run


def read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, keep_default_na=False).set_index(["source", "target"])
    assert list(table) == ["performance", "warning"]
    assert table.index.is_unique
    return table


def test_sources_are_named_by_their_weights_or_their_entry() -> None:
    named: dict[str, tuple[str, str, str | None]] = {
        "vit_tiny": ("timm/vit_tiny", "DEFAULT", None),
        "best.model": ("resnet50", "/far/away/best.model.pth", None),
        "resnet50_IMAGENET1K_V1": ("resnet50", "IMAGENET1K_V1", None),
        "mobilenet_v2_embedded": ("mobilenet_v2", "embedded", None),
        "mine": ("mine", "x.safetensors", "registry.json"),
    }
    for source, (backbone, weights, registry) in named.items():
        assert name_source(backbone, weights, registry) == source


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
    assert performances("runs/*", output="table.csv") == EXPECTED
    assert read(Path("table.csv"))["performance"].to_dict() == EXPECTED
    assert "the whole network fine-tuned" in " ".join(capsys.readouterr().out.split())
    named = performances("runs/*", names={"mine": "ours"}, output="named.csv")
    assert {source for source, _ in named} == {"first", "ours"}

    evaluate.main(["performances", "runs/*", "--output=table.csv"])
    with pytest.raises(UserError, match=r"holds something else; .*--overwrite=true"):
        performances("runs/first-*", output="table.csv")


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

    refuse("names: nobody given, but the runs are of farms, first, mine", "runs/*", names={"nobody": "x"})
    refuse("runs: no accuracy of head is in what is given; they are of all", "runs/*", trained="head")


def test_other_runs_and_damaged_ones_are_refused(tuned: Path) -> None:
    write_run(Path("comparison"))
    refuse("'comparison' is of comparison, and not of .*; headstart leaderboard has its", "comparison", "runs/*")
    for document, message in (
        ({"task": "source_training"}, "is of source_training, and not of target_accuracy; leave it out"),
        ({"schema": 3, "task": "target_accuracy"}, "has schema 3, but this version of Headstart reads schema 1; make"),
    ):
        (tuned / "mine-pets" / "results.json").write_text(json.dumps(sealed(document, {})))
        refuse(message, "runs/*")
    text = (tuned / "first-pets" / "results.json").read_text()
    (tuned / "first-pets" / "results.json").write_text(text.replace("pets", "vets", 1))
    refuse(r"the files in '.*first-pets' are damaged", "runs/first-pets")
    # A run that was cut off has its configuration alone.
    (tuned / "first-pets" / "results.json").rename(tuned / "first-pets" / "config.yaml")
    refuse(r"the files in '.*first-pets' are damaged \(No such file", "runs/*")
    refuse("'runs' matches no folder of a run", "runs")

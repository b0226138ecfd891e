"""The best recipe of each source on each target: by the selection photos, and what is said of the choice."""

import csv
import itertools
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.performances import performances
from headstart.output.errors import UserError
from headstart.store.accuracy_traces import Counted
from headstart.store.json_digest import sealed
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import TraceKey

SIZES = {"validation_size": 100, "selection_size": 20}
RATES = (0.01, 0.001, 0.1)
# Correct predictions on validation and on selection photos, by learning rate, of two orderings.
Counts = Mapping[float, list[tuple[int, int]]]
PETS: dict[str, Counts] = {
    # The best on selection photos is not the best on validation photos.
    "one": {0.001: [(90, 10), (90, 11)], 0.01: [(80, 14), (70, 15)], 0.1: [(20, 9), (20, 9)]},
    # Two are equal on selection photos.
    "two": {0.001: [(60, 10), (60, 10)], 0.01: [(61, 11), (63, 9)], 0.1: [(99, 8), (99, 8)]},
    "three": {0.001: [(50, 3), (50, 3)], 0.01: [(55, 4), (55, 4)], 0.1: [(85, 16), (85, 17)]},
}


def documents(source: str, target: str, rate: float, **fed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    optimizer = {"class_path": "torch.optim.AdamW", "init_args": {"lr": rate, "weight_decay": 0.05}}
    training = {
        "class": "TargetAccuracy",
        "hyperparameters": {"trained": "all", "optimizer": optimizer, "augmentation": [{"class_path": "Shift"}]},
        "trainer": {"max_epochs": 3, "device": "cpu"},
    }
    photos = {f"{split}_photos_sha256": f"{split} of {target}" for split in ("train", "validation")}
    plain = {"task": "target_accuracy", **photos, "network": source, "preprocessing": {}, "batch_size": 8}
    return {**plain, "selection_share": 0.2, **fed}, training


def protocol(source: str, target: str) -> dict[str, Any]:
    return {"dataset": target, "backbone": source, "weights": "w", "registry": "registry.json", **SIZES}


def write(folder: Path, target: str, sources: Mapping[str, Counts], **fed: Any) -> Path:
    for source, counts in sources.items():
        for rate, orderings in counts.items():
            made_from, training = documents(source, target, rate, **fed)
            document = {
                "schema": 1,
                "task": "target_accuracy",
                "complete": True,
                "only_classes": [None] * len(orderings),
                "accuracies": [validation / 100 for validation, _ in orderings],
                "selection_accuracies": [selection / 20 for _, selection in orderings],
                "protocol": protocol(source, target),
                "key": {"stream": made_from, "method": training, "orderings": list(range(len(orderings)))},
            }
            (folder / f"{target}-{source}-{rate}").mkdir(parents=True)
            (folder / f"{target}-{source}-{rate}" / "results.json").write_text(json.dumps(sealed(document, {})))
    return folder


def choose(folder: Path, **options: Any) -> list[dict[str, str]]:
    table = folder.parent / "best.csv"
    result = performances(f"{folder}/*", best=True, output=str(table), overwrite=True, **options)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert result == {(row["source"], row["target"]): float(row["performance"]) for row in rows}
    return rows


def words(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_the_selection_photos_choose_and_the_validation_photos_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {row["source"]: row for row in choose(write(tmp_path / "runs", "pets", PETS))}
    assert [(row["optimizer.lr"], float(row["performance"])) for row in rows.values()] == [
        ("0.01", 0.75),
        ("0.1", 0.85),
        ("0.001", 0.6),
    ]
    assert float(rows["one"]["selection_accuracy"]) == pytest.approx(29 / 40)
    assert [row["warning"] for row in rows.values()] == [
        "",
        "The chosen optimizer.lr 0.1 is the highest that was tried; widen the grid.",
        # Of two equal ones, the other has a learning rate between others.
        "",
    ]
    printed = words(capsys)
    assert "WARNING: three on pets: The chosen optimizer.lr 0.1 is the highest that was tried; widen" in printed
    assert "1 of 3 choices are ties, of which the first recipe in the order of values counts." in printed


def test_rankings_by_one_recipe_are_compared_with_the_chosen_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choose(write(tmp_path / "runs", "pets", PETS))
    printed = words(capsys)
    chosen = np.array([0.75, 0.6, 0.85])
    means = {rate: [np.mean([v for v, _ in PETS[source][rate]]) for source in PETS] for rate in sorted(RATES)}
    with (tmp_path / "best.movement.csv").open(newline="") as file:
        written = {float(row["optimizer.lr"]): row for row in csv.DictReader(file)}
    assert list(written) == sorted(RATES)
    for rate, alone in means.items():
        pairs = list(itertools.combinations(range(3), 2))
        tau = np.mean([np.sign((chosen[i] - chosen[j]) * (alone[i] - alone[j])) for i, j in pairs])
        assert f"optimizer.lr {rate} 3 {np.mean(alone) / 100:.4g} 1 {tau:z.2f}" in printed
        selected = np.mean([s / 20 for source in PETS for _, s in PETS[source][rate]])
        numbers = [float(written[rate][name]) for name in ("pairs", "accuracy", "selection_accuracy", "tau pets")]
        assert numbers == pytest.approx([3, np.mean(alone) / 100, selected, tau])
        assert written[rate]["chosen_for"] == "1"
    # 10.5 + 10 + 3, 14.5 + 10 + 4, and 9 + 8 + 16.5 of 20 selection photos.
    best = f"the best recipe for all by the selection photos, optimizer.lr 0.1: {np.mean(means[0.1]) / 100:.4g}"
    assert f"chosen for each pair: accuracy 0.7333; {best};" in printed


def test_zero_is_no_edge_and_missing_recipes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some: dict[str, Counts] = {"one": {0: [(50, 9)], 0.01: [(40, 8)]}, "two": {0.01: [(30, 5)]}}
    rows = choose(write(tmp_path / "runs", "pets", some))
    assert [row["warning"] for row in rows] == ["", "It was chosen from 1 of 2 recipes."]
    printed = words(capsys)
    assert "WARNING: two on pets: It was chosen from 1 of 2 recipes." in printed
    # Its mean is over another set of pairs.
    assert "optimizer.lr 0 1 – 1 – optimizer.lr 0.01 2 0.35 1 1.00" in printed
    assert (tmp_path / "best.movement.csv").read_text().splitlines()[1] == "0,1,,,1,"


def test_a_missing_comparison_of_recipes_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choose(write(tmp_path / "runs", "pets", {"one": PETS["one"]}))
    assert "Each target has one source, so that the choice of a recipe can move no ranking." in words(capsys)
    choose(write(tmp_path / "others", "pets", {source: {0.1: [(1, 1)]} for source in ("one", "two")}))
    assert "All runs have one recipe, so that nothing was chosen" in words(capsys)
    (tmp_path / "best.csv").unlink()
    with pytest.raises(UserError, match=r"best.movement.csv' holds something else"):
        performances(f"{tmp_path / 'runs'}/*", best=True, output=str(tmp_path / "best.csv"))
    assert not (tmp_path / "best.csv").exists()


def test_a_tie_with_a_value_in_between_is_at_no_edge(tmp_path: Path) -> None:
    tied: Counts = {0.001: [(50, 9)], 0.01: [(40, 9)], 0.1: [(40, 8)]}
    assert [row["warning"] for row in choose(write(tmp_path / "runs", "pets", {"one": tied}))] == [""]


def test_only_settings_of_the_optimizer_are_to_be_tried_more_widely(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for size, correct in ((8, 9), (16, 12), (None, 3)):
        write(tmp_path / str(size), "pets", {"one": {0.1: [(50, correct)]}, "two": {0.1: [(50, 5)]}}, batch_size=size)
    shutil.rmtree(tmp_path / "None" / "pets-two-0.1")
    shutil.rmtree(tmp_path / "16" / "pets-two-0.1")
    rows = []
    for folders in (("8", "16"), ("8", "None")):
        table = tmp_path / "table.csv"
        performances([f"{tmp_path / each}/*" for each in folders], best=True, output=str(table), overwrite=True)
        with table.open(newline="") as file:
            rows += [row["warning"] for row in csv.DictReader(file) if row["source"] == "one"]
    assert rows == ["The chosen batch_size 16 is the highest that was tried.", ""]
    printed = words(capsys)
    assert "batch_size – 1 –" in printed
    assert "None" not in printed.replace(str(tmp_path), "")


def test_a_ledger_of_runs_with_and_without_selection_photos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def store(ledger: Ledger, source: str, counted: Counted, **fed: Any) -> None:
        made_from, training = documents(source, "pets", 0.1, trainable_from="all", **fed)
        stream = ledger.record(made_from, description=protocol(source, "pets"))
        ledger.write({TraceKey(stream, ledger.record(training), 0): counted.trace()})

    with Ledger(tmp_path / "ledger") as ledger:
        store(ledger, "one", Counted(90), selection_share=0.0)
        store(ledger, "one", Counted(80, None, 15))
        store(ledger, "two", Counted(70, None, 15))
    output = str(tmp_path / "table.csv")
    message = (
        r"runs: (one|two) on pets in '.*ledger' differs from (one|two) on pets in '.*ledger' in selection_share "
        r"\((0.0, 0.2|0.2, 0.0)\); give runs of one recipe, or --best"
    )
    with pytest.raises(UserError, match=message):
        performances(str(tmp_path / "ledger"), output=output)
    chosen = performances(str(tmp_path / "ledger"), best=True, output=output)
    assert chosen == {("one", "pets"): 0.8, ("two", "pets"): 0.7}
    assert "WARNING: Left out, without an accuracy on selection photos: one on pets in" in words(capsys)

    with Ledger(tmp_path / "without") as ledger:
        store(ledger, "one", Counted(90), selection_share=0.0)
    assert performances(str(tmp_path / "without"), output=output, overwrite=True) == {("one", "pets"): 0.9}


def test_runs_of_several_recipes_need_a_choice(tmp_path: Path) -> None:
    write(tmp_path / "runs", "pets", PETS)
    message = (
        r"runs: (three|one) on (pets|farms) in '.*' differs from one on pets in '.*-one-0.*' in "
        r"optimizer\.init_args\.lr \(0.\d+, 0.\d+\); give runs of one recipe, or --best for the one "
    )
    with pytest.raises(UserError, match=message):
        performances(f"{tmp_path / 'runs'}/*", output=str(tmp_path / "x.csv"))
    for other in ("pets", "farms"):
        mixed = [f"{tmp_path / 'runs'}/pets-one-0.01", f"{tmp_path / 'mixed'}/{other}*"]
        write(tmp_path / "mixed", other, {"three": {0.1: [(1, 1)]}})
        with pytest.raises(UserError, match=message):
            performances(mixed, output=str(tmp_path / "x.csv"))
    assert len(performances(f"{tmp_path / 'runs'}/*-0.1", output=str(tmp_path / "x.csv"))) == 3


def test_recipes_of_other_orderings_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "runs", "pets", PETS)
    write(tmp_path / "runs", "pets", {"one": {1: [(1, 1)]}})
    message = r"best: one on pets has orderings 0, 1 of optimizer\.lr 0\.001, but 0 of optimizer\.lr 1; run"
    with pytest.raises(UserError, match=message):
        choose(tmp_path / "runs")
    assert not (tmp_path / "best.csv").exists()


def test_runs_without_selection_photos_have_no_choice(tmp_path: Path) -> None:
    folder = write(tmp_path / "runs", "pets", {"one": {0.1: [(1, 1)]}})
    [path] = folder.glob("*/results.json")
    document = json.loads(path.read_text())
    del document["selection_accuracies"]
    path.write_text(json.dumps(sealed(document, {})))
    with pytest.raises(
        UserError, match=r"best: no accuracy on selection photos is there of one on pets in '.*pets-one-0.1'; run"
    ):
        choose(folder)

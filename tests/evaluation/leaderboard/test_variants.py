"""Variants of a method that runs call by one name: named apart, and chosen on other data sets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.report.replication import replication
from headstart.evaluation.runs import find_folders
from headstart.evaluation.stored_traces import read_stream
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.output.errors import UserError
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.ledgers import reach, store
from headstart.tests.material.runs import seal, write_run

# Samples to criterion by data set and variant, for what the baseline needs 40: each is best somewhere.
SAMPLES = {"pets": {0.1: 12, 1: 20, 10: 30}, "flowers": {0.1: 30, 1: 15, 10: 25}, "birds": {0.1: 35, 1: 30, 10: 20}}


def write_variant(
    folder: Path,
    alpha: Any,
    samples: int,
    dataset: str,
    name: str = "ridge",
    code: str = "a",
    named: dict[str, str] | None = None,
    limit: int | None = None,
) -> None:
    """Write a run of a baseline and of one variant of a method, four orderings each."""
    correct = np.stack([reach([need, need + 1, need + 2, need + 3], 60) for need in (40, samples)])
    methods = ("baseline", name) if name != "baseline" else ("other", name)
    write_run(folder, correct, limit=60, dataset=dataset, methods=methods)
    kinds: dict[str, dict[str, Any]] = {
        methods[0]: {
            "class": "headstart.modules.GradientDescent",
            "hyperparameters": {},
            "code": {"headstart.modules.method": "a"},
        },
        methods[1]: {
            "class": "headstart.modules.Ridge",
            "hyperparameters": {"alpha": alpha},
            "code": {"modules.ridge": code},
        },
    }
    kinds[methods[1]] |= {"code": {"modules.ridge": code, **(named or {})}, "max_samples": limit}
    document = json.loads((folder / "results.json").read_text())
    document["methods"] = {name: {"key": kind} for name, kind in kinds.items()}
    seal(folder, document)


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for dataset, variants in SAMPLES.items():
        for alpha, samples in variants.items():
            write_variant(tmp_path / "runs" / f"{dataset}-{alpha}", alpha, samples, dataset)
    return tmp_path / "runs"


def rank(folder: Path, **options: Any) -> dict[str, Any]:
    return leaderboard(str(folder), output=str(folder.parent / "out"), consecutive=10, overwrite=True, **options)


def restricted_means(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        setting["dataset"]: {each["name"]: each["restricted_mean"] for each in setting["methods"]}
        for setting in document["settings"]
    }


def test_variants_are_named_by_what_was_swept(swept: Path) -> None:
    document = rank(swept)
    assert restricted_means(document) == {
        dataset: {"baseline": 41.5, **{f"ridge (alpha {alpha})": need + 1.5 for alpha, need in variants.items()}}
        for dataset, variants in SAMPLES.items()
    }
    assert not document["left_out"]
    names = ["ridge (alpha 0.1)", "ridge (alpha 1)", "ridge (alpha 10)"]
    assert any(f"{', '.join(sorted(names))} are one class" in remark for remark in document["remarks"])
    # The variants are the same in all settings, so that they are compared over them.
    assert {each["name"] for each in document["over_settings"]["methods"]} == {"baseline", *names}


def test_one_that_was_run_on_some_data_sets_only_has_its_name_there(swept: Path, tmp_path: Path) -> None:
    write_variant(swept / "cars", 0.1, 22, "cars")
    assert restricted_means(rank(swept))["cars"] == {"baseline": 41.5, "ridge (alpha 0.1)": 23.5}


def test_the_honest_choice_of_a_data_set_is_made_on_the_others(swept: Path) -> None:
    document = rank(swept, choose={"ridge": "ridge (*"})
    # The products of the samples on the two others, counted by hand.
    chosen = {"pets": 1, "flowers": 0.1, "birds": 1}
    for setting in document["settings"]:
        row = next(each for each in setting["methods"] if each["name"] == "ridge")
        alpha = chosen[setting["dataset"]]
        assert row["tuned"] == f"ridge (alpha {alpha}), chosen on other data sets"
        assert row["restricted_mean"] == SAMPLES[setting["dataset"]][alpha] + 1.5
        assert len(setting["methods"]) == 2


def test_a_baseline_is_chosen_as_honestly(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for dataset, variants in SAMPLES.items():
        for alpha, samples in variants.items():
            write_variant(tmp_path / "runs" / f"{dataset}-{alpha}", alpha, samples, dataset, name="baseline")
    assert all(setting["baseline"] is None for setting in rank(tmp_path / "runs")["settings"])
    for setting in rank(tmp_path / "runs", choose={"baseline": "baseline (*"})["settings"]:
        assert setting["baseline"] == "baseline"
        [other] = [each for each in setting["methods"] if each["name"] == "other"]
        assert other["relative_improvement"] is not None


def test_methods_of_other_code_are_no_variants(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write_variant(tmp_path / "runs" / "a", 0.1, 12, "pets")
    write_variant(tmp_path / "runs" / "b", 1, 20, "pets", code="b")
    with pytest.raises(UserError, match=r"differs from .* in the method ridge; give one of them another name"):
        rank(tmp_path / "runs")


def test_variants_may_name_classes_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for kind, samples in (("one.Classifier", 12), ("other.Classifier", 20)):
        write_variant(tmp_path / "runs" / kind, kind, samples, "pets", named={kind: kind})
    names = [f"ridge (alpha {kind})" for kind in ("one.Classifier", "other.Classifier")]
    assert restricted_means(rank(tmp_path / "runs"))["pets"].keys() == {"baseline", *names}


def test_a_choice_is_compared_over_data_sets_that_have_their_own_limits(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for index, (dataset, variants) in enumerate(SAMPLES.items()):
        for alpha, samples in variants.items():
            write_variant(tmp_path / "runs" / f"{dataset}-{alpha}", alpha, samples, dataset, limit=200 + index)
    over = rank(tmp_path / "runs", choose={"ridge": "ridge (*"})["over_settings"]
    assert {each["name"] for each in over["methods"]} == {"baseline", "ridge"}


def test_a_variant_of_the_ledger_alone_has_a_name_of_its_kind(tmp_path: Path) -> None:
    names = ("baseline", "ridge")
    traces = {name: reach([30, 31], 60) for name in names}
    for alpha in (0.1, 1, 10):
        kinds = {"ridge": {"class": "headstart.modules.Ridge", "hyperparameters": {"alpha": alpha}}}
        store(tmp_path / "stored", {name: traces[name] for name in names}, kinds=kinds)
    with LedgerReader(tmp_path / "stored") as ledger:
        [(digest, fed)] = ledger.streams().items()
        stored = read_stream(ledger, digest, fed, [], {})
        measured = replace(stored, curves=stored.curves.select(["ridge (alpha 0.1)", "ridge (alpha 10)"]))
        named = read_stream(ledger, digest, fed, [measured], {})
    assert sorted(named.curves.methods) == ["baseline", *(f"ridge (alpha {alpha})" for alpha in (0.1, 1, 10))]


def test_the_page_tells_how_to_run_a_variant_alone(swept: Path) -> None:
    settings, _ = read_settings([str(swept)], LeaderboardOptions(consecutive=10))
    document = rank(swept)
    runs = [run for setting in settings for run in setting.runs]
    assert [str(run.folder) for run in runs] == [str(folder) for folder in find_folders(str(swept / "*"))]
    pets = next(part for part in replication(document, runs).parts if "pets" in part.title)
    [rows] = [text.text for text in pets.files if text.title == "Command of each row"]
    [line] = [line for line in rows.splitlines() if "ridge (alpha 10)" in line and not line.startswith("#")]
    assert str(swept / "pets-10" / "config.yaml") in line

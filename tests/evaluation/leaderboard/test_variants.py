"""Variants of a method that runs call by one name: named apart, and chosen on other data sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.tests.material.leaderboards import rank, refusal
from headstart.tests.material.ledgers import reach
from headstart.tests.material.runs import write_run

# Samples to criterion by data set and variant, for what the baseline needs 40: each is best somewhere.
SAMPLES = {"pets": {0.1: 12, 1: 20, 10: 30}, "flowers": {0.1: 30, 1: 15, 10: 25}, "birds": {0.1: 35, 1: 30, 10: 20}}
CRITERION = {"consecutive": 10}


def write_variant(
    folder: Path, alpha: Any, samples: int, dataset: str = "pets", limit: int = 9, code: Any = None
) -> None:
    """Write a run of a baseline and of one variant of a method, four orderings each."""
    correct = np.stack([reach([need, need + 1, need + 2, need + 3], 60) for need in (40, samples)])
    baseline: dict[str, Any] = {"class": "headstart.modules.GradientDescent", "hyperparameters": {}}
    baseline["code"] = {"modules.method": "a"}
    ridge: dict[str, Any] = {
        "class": "headstart.modules.Ridge",
        "hyperparameters": {"alpha": alpha},
        "max_samples": limit,
    }
    ridge["code"] = {"modules.ridge": "a", **(code or {})}
    keys = {"baseline": baseline, "ridge": ridge}
    write_run(folder, correct, limit=60, dataset=dataset, methods=("baseline", "ridge"), keys=keys)


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    for dataset, variants in SAMPLES.items():
        for alpha, samples in variants.items():
            write_variant(tmp_path / "runs" / f"{dataset}-{alpha}", alpha, samples, dataset, limit=200)
    return tmp_path / "runs"


def restricted_means(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        setting["dataset"]: {each["name"]: each["restricted_mean"] for each in setting["methods"]}
        for setting in document["settings"]
    }


def test_variants_are_named_by_what_was_swept(swept: Path) -> None:
    document = rank(swept, **CRITERION)
    assert restricted_means(document) == {
        dataset: {"baseline": 41.5, **{f"ridge (alpha {alpha})": need + 1.5 for alpha, need in variants.items()}}
        for dataset, variants in SAMPLES.items()
    }
    assert not document["left_out"]
    names = ["ridge (alpha 0.1)", "ridge (alpha 1)", "ridge (alpha 10)"]
    # The variants are the same in all settings, so that they are compared over them.
    assert {each["name"] for each in document["over_settings"]["methods"]} == {"baseline", *names}
    # One of a single data set has its name there.
    write_variant(swept / "cars", 0.1, 22, "cars", limit=200)
    assert restricted_means(rank(swept, **CRITERION))["cars"] == {"baseline": 41.5, "ridge (alpha 0.1)": 23.5}


def test_methods_of_other_code_are_no_variants_but_their_values_may_name_some(tmp_path: Path) -> None:
    write_variant(tmp_path / "other" / "a", 0.1, 12)
    write_variant(tmp_path / "other" / "b", 1, 20, code={"modules.ridge": "b"})
    assert "in the method ridge; give one of them another name" in refusal(tmp_path / "other", **CRITERION)
    kinds = {"one.Classifier": 12, "other.Classifier": 20}
    for kind, samples in kinds.items():
        write_variant(tmp_path / "runs" / kind, kind, samples, code={kind: kind})
    names = {"baseline", *(f"ridge (alpha {kind})" for kind in kinds)}
    assert restricted_means(rank(tmp_path / "runs", **CRITERION))["pets"].keys() == names

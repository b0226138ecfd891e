"""A registry of small random networks, and the command that scores them on the folder of photos."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headstart import evaluate
from headstart.tests.material.arena import make_entry

ENTRIES = [
    make_entry("squeezenet1_1", "features", "pool", 512),
    make_entry("resnet18", "penultimate", "flatten", 512, model_parameters={"num_classes": 7}),
    make_entry("headless", "conv_head", "pool", 1024, source="timm"),
]
ENTRIES[2]["model_parameters"] = {"model_name": "mobilenetv3_small_050", "num_classes": 0}


@dataclass
class Scored:
    """The files of a run."""

    folder: Path
    rows: list[dict[str, str]]
    document: dict[str, Any]


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"contract_version": "1.0", "models": ENTRIES}))
    return path


@pytest.fixture
def run(tmp_path: Path, registry: Path, photo_folder: Path) -> Callable[..., Scored]:
    def score(*options: str, models: str = "[squeezenet1_1, resnet18]", output: str = "out") -> Scored:
        targets = ["--targets.photos=ClassFolders", f"--targets.photos.root={photo_folder}"]
        arguments = [f"--registry={registry}", f"--models={models}", f"--output={tmp_path / output}", "--logger=false"]
        arguments += ["--extraction.num_workers=0", "--extraction.device=cpu"]
        evaluate.main(["transferability", *targets, *arguments, *options])
        return read(tmp_path / output)

    return score


def read(folder: Path) -> Scored:
    with (folder / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Scored(folder, rows, json.loads((folder / "transferability.json").read_text()))

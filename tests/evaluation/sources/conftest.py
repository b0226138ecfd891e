"""A registry of small random networks, and the command that scores them on the folder of photos."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart import evaluate
from headstart.evaluation.sources.scores import Metrics, Score, score_source
from headstart.metrics.transferability.inputs import Inputs
from headstart.output.progress import Progress
from headstart.tests.material.arena import make_entry

ENTRIES = [
    make_entry("squeezenet1_1", "features", "pool", 512),
    make_entry("resnet18", "penultimate", "flatten", 512, model_parameters={"num_classes": 7}),
    make_entry("headless", "conv_head", "pool", 1024, source="timm"),
]
ENTRIES[2]["model_parameters"] = {"model_name": "mobilenetv3_small_050", "num_classes": 0}


# Of sixty samples that tests draw.
LABELS = np.arange(60) % 3


class Scored:
    """The files of a run; `cells` are the results on the photos, by source and metric."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (folder / "scores.csv").open(newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.document: dict[str, Any] = json.loads((folder / "transferability.json").read_text())
        self.report = (folder / "report.md").read_text()
        self.cells: dict[str, dict[str, Any]] = self.document["scores"]["photos"]


def write_registry(folder: Path, models: Sequence[dict[str, Any]] = ENTRIES) -> Path:
    path = folder / "registry.json"
    path.write_text(json.dumps({"contract_version": "1.0", "models": models}))
    return path


def score(folder: Path, photos: Path, *options: str, models: str, output: str) -> Scored:
    """Score models of the registry in a folder."""
    arguments = ["--targets.photos=ClassFolders", f"--targets.photos.root={photos}", f"--models={models}"]
    arguments += [f"--registry={folder / 'registry.json'}", f"--output={folder / output}", "--logger=false"]
    arguments += ["--extraction.num_workers=0", "--extraction.device=cpu"]
    evaluate.main(["transferability", *arguments, *options])
    return Scored(folder / output)


def score_pool(
    metrics: Metrics, sources: Mapping[str, NDArray[np.float64]], parts: NDArray[np.int64]
) -> dict[str, dict[str, Score]]:
    """Score features of the sixty samples, by source."""
    with Progress("metrics", 1, "scores") as progress:
        return {name: score_source(metrics, Inputs(x, LABELS), parts, progress) for name, x in sources.items()}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return write_registry(tmp_path)


@pytest.fixture
def run(tmp_path: Path, registry: Path, photo_folder: Path) -> Callable[..., Scored]:
    def run(*options: str, models: str = "[squeezenet1_1, resnet18]", output: str = "out") -> Scored:
        return score(tmp_path, photo_folder, *options, models=models, output=output)

    return run

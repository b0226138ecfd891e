"""Documents and data sets of a small arena: three small random networks, and the command that scores them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headstart import evaluate
from headstart.contract.documents import read_catalog, read_registry

SIDE = 32
PREPROCESS = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "resize": SIDE, "crop": SIDE}


def make_entry(name: str, layer: str, embedding: str, width: int, **fields: Any) -> dict[str, Any]:
    return {
        "model_name": name,
        "source": "torchvision",
        "weights": None,
        "layer": layer,
        "embedding": embedding,
        "input_size": [SIDE, SIDE],
        "preprocess": PREPROCESS,
        "output_dim": width,
        **fields,
    }


ENTRIES = [
    make_entry("squeezenet1_1", "features", "pool", 512),
    make_entry("shufflenet_v2_x0_5", "fc", "flatten", 1024),
    make_entry(
        "mobilenet_v2_narrow",
        "classifier",
        "flatten",
        1280,
        model_parameters={"name": "mobilenet_v2", "width_mult": 0.25},
    ),
]


@dataclass
class Arena:
    """Documents and data sets in a folder, and the command that scores."""

    folder: Path
    registry: Path
    catalog: Path
    stimuli: list[dict[str, str]]

    def write(self, name: str, document: Any) -> Path:
        path = self.folder / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def blue(self, *models: str) -> Path:
        return self.write("blue.json", {"models": list(models)})

    def red(self, indices: Sequence[int]) -> Path:
        return self.write("red.json", {"differentiating_images": [self.stimuli[i] for i in indices]})

    def photo(self, index: int) -> Path:
        stimulus = self.stimuli[index]
        return self.folder / "datasets" / stimulus["dataset_name"] / stimulus["image_identifier"]

    def evaluate(self, command: str, *options: str, output: str = "out") -> Path:
        paths = [f"--registry={self.registry}", f"--catalog={self.catalog}", f"--output={self.folder / output}"]
        evaluate.main([command, *paths, "--extraction.num_workers=0", "--extraction.device=cpu", *options])
        return self.folder / output

    def score(self, submission: Path, *options: str, output: str = "out") -> dict[str, Any]:
        options = (f"--submission={submission}", "--logger=false", "--overwrite=true", *options)
        folder = self.evaluate("cka", *options, output=output)
        document: dict[str, Any] = json.loads((folder / "score.json").read_text())
        return document


def read_rows(
    registry: Path, catalog: Path, models: Sequence[str] = (), indices: Sequence[int] = (), layers: Any = None
) -> dict[str, NDArray[Any]]:
    """Return the rows of which scores are computed, by default of all models and stimuli; scored ones are stored."""
    from headstart.evaluation.alignment.scoring import ScoringSetup, represent
    from headstart.evaluation.embeddings import Extraction

    extraction = Extraction(device="cpu", num_workers=0)
    setup = ScoringSetup(read_registry(registry), read_catalog(catalog), extraction)
    stimuli = [setup.catalog.stimuli[index] for index in indices] or setup.catalog.stimuli
    return represent(models or list(setup.registry.entries), stimuli, setup, layers)[0]


def set_environment(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Name the data sets of an arena in a folder, and nothing else."""
    for variable in ("MODEL_REGISTRY", "STIMULI_CATALOG", "MODAL_ENABLE", "LOG_DIR"):
        patch.delenv(f"HACKATHON_{variable}", raising=False)
    patch.setenv("HACKATHON_DATASET_ROOT", str(folder / "datasets"))


def make_arena(folder: Path) -> Arena:
    """Write eighteen stimuli of two data sets, and documents that name them and the networks."""
    stimuli = []
    generator = np.random.default_rng(0)
    for dataset in ("nature", "city-scenes"):
        for i in range(9):
            identifier = f"val/{i % 2}/{i}.png"
            path = folder / "datasets" / dataset / identifier
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = generator.integers(0, 256, (4 + i, 5, 3)).astype(np.uint8)
            Image.fromarray(coarse).resize((40 + i, 36), Image.Resampling.BICUBIC).save(path)
            stimuli.append({"dataset_name": dataset, "image_identifier": identifier})
    arena = Arena(folder, folder / "registry.json", folder / "catalog.jsonl", stimuli)
    arena.write("registry.json", {"contract_version": "1.0", "models": ENTRIES})
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in stimuli))
    return arena

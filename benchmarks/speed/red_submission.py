"""A Red Team submission on stored embeddings, its validation, and a search for 1,000 of 100,000 stimuli."""

import json
import time
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.benchmarks.speed.frame import compare, peak_mib, run, temporary_folder
from headstart.metrics.similarity.stimulus_scores import StimulusScores
from headstart.metrics.similarity.subset_search import search_subsets

MODELS, STIMULI, SIDE, REPEATS = 12, 100, 64, 5
# A search of the size of a real challenge, on random embeddings that share directions.
WIDTH, SHARED, CHOSEN = 512, 30, 1000


def main(large_stimuli: int = 100_000, steps: int = 50) -> None:
    """Print the times of validation and scoring from the command line, and what a search finds.

    Args:
        large_stimuli: Number of stimuli from which the search chooses.
        steps: Steps of the search.
    """
    with temporary_folder() as folder:
        _write_arena(folder)
        documents = [f"--registry={folder / 'registry.json'}", f"--catalog={folder / 'catalog.jsonl'}"]
        submission = str(folder / "submission.json")
        variables = {"HACKATHON_DATASET_ROOT": str(folder), "WANDB_MODE": "offline"}
        command = partial(run, cache=folder / "cache", **variables)

        score = ["evaluate.py", "cka", f"--submission={submission}", *documents, f"--output={folder / 'out'}"]
        print(f"first scoring, {MODELS} networks on {STIMULI} stimuli of {SIDE} pixels: {command(*score)}")
        commands = {
            "validation": partial(command, "scripts/validate_submission.py", submission, *documents),
            "scoring from stored embeddings": partial(command, *score, "--logger=false"),
            "scoring with the dashboard offline": partial(command, *score),
        }
        compare(commands, "validation", REPEATS)
    _search(large_stimuli, steps)


def _search(stimuli: int, steps: int) -> None:
    """Search in a large catalog, and print scores and memory."""
    embeddings = _sample_embeddings(stimuli)

    def search() -> None:
        begun = time.monotonic()
        for found in islice(search_subsets(StimulusScores(embeddings), CHOSEN), steps):
            print(f"after {time.monotonic() - begun:.0f} s: score {found.score:.4f}", flush=True)

    peak, _ = peak_mib(search)
    size = sum(each.nbytes for each in embeddings) / 2**20
    print(f"{CHOSEN:,} of {stimuli:,} stimuli: {peak:.0f} MiB besides {size:.0f} MiB")


def _sample_embeddings(stimuli: int) -> list[NDArray[np.float32]]:
    """Return random embeddings of models that agree on some stimuli more than on others."""
    generator = np.random.default_rng(0)
    strengths = np.linspace(2, 0.2, SHARED, dtype=np.float32)
    shared = generator.standard_normal((stimuli, SHARED), dtype=np.float32) * strengths
    own = generator.uniform(0.2, 1.4, (stimuli, 1)).astype(np.float32)
    embeddings = []
    for _ in range(MODELS):
        rows = own * generator.standard_normal((stimuli, WIDTH), dtype=np.float32)
        rows += shared @ generator.standard_normal((SHARED, WIDTH), dtype=np.float32) / 5
        embeddings.append(rows)
    return embeddings


def _write_arena(folder: Path) -> None:
    generator = np.random.default_rng(0)
    (folder / "pictures").mkdir()
    stimuli = [{"dataset_name": "pictures", "image_identifier": f"{i}.jpg"} for i in range(STIMULI)]
    for stimulus in stimuli:
        picture = Image.fromarray(generator.integers(0, 256, (256, 256, 3)).astype(np.uint8))
        picture.save(folder / "pictures" / stimulus["image_identifier"])

    entry = {
        "source": "torchvision",
        "weights": None,
        "layer": "fc",
        "embedding": "flatten",
        "input_size": [SIDE, SIDE],
        "preprocess": {"mean": [0.5] * 3, "std": [0.25] * 3, "resize": SIDE, "crop": SIDE},
        "output_dim": 2048,
    }
    models = [{"model_name": f"resnet50-{i}", **entry} for i in range(MODELS)]
    (folder / "registry.json").write_text(json.dumps(models))
    (folder / "catalog.jsonl").write_text("".join(json.dumps(stimulus) + "\n" for stimulus in stimuli))
    (folder / "submission.json").write_text(json.dumps({"differentiating_images": stimuli}))

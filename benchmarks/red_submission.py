"""A Red Team submission on stored embeddings, 12 models and 100 stimuli, and the validation of a submission."""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.command import run

MODELS, STIMULI, SIDE, REPEATS = 12, 100, 64, 5


def main() -> None:
    """Fill the store once, then time validation and scoring from the command line, and print medians."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_arena(folder)
        documents = [f"--registry={folder / 'registry.json'}", f"--catalog={folder / 'catalog.jsonl'}"]
        submission = str(folder / "submission.json")
        score = ["evaluate.py", "cka", f"--submission={submission}", *documents, f"--output={folder / 'out'}"]
        filled = _run(folder, *score)
        for title, command in (
            ("validation", ["scripts/validate_submission.py", submission, *documents]),
            ("scoring from stored embeddings, without the dashboard", [*score, "--logger=false"]),
            ("scoring from stored embeddings, dashboard offline", score),
        ):
            seconds = statistics.median(_run(folder, *command) for _ in range(REPEATS))
            print(f"{title}: {seconds:.2f} s")
        print(f"first scoring, {MODELS} networks on {STIMULI} stimuli of {SIDE} pixels: {filled:.1f} s")


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


def _run(folder: Path, *command: str) -> float:
    places = {"HACKATHON_DATASET_ROOT": str(folder), "WANDB_MODE": "offline"}
    return run(*command, cache=folder / "cache", **places).seconds


if __name__ == "__main__":
    main()

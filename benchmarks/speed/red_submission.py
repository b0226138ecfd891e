"""A Red Team submission on stored embeddings, its validation, and a search for 1,000 of 100,000 stimuli."""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.metrics.similarity.centred_catalog import CentredCatalog
from headstart.metrics.similarity.stimulus_subset_search import SearchState, worst_stimulus_subset

MODELS, STIMULI, SIDE, REPEATS = 12, 100, 64, 5
# A search of the size of a real challenge, on random embeddings that share directions.
LARGE_MODELS, LARGE_STIMULI, WIDTH, SHARED, CHOSEN = 12, 100_000, 512, 30, 1000
SECONDS, INTERVAL = 120.0, 30.0


def main() -> None:
    """Fill the store once, time validation and scoring from the command line, and print medians."""
    with temporary_folder() as folder:
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
    _search()


def _search() -> None:
    """Search in a large catalog, print scores and memory, then the best of random subsets in the same time."""
    embeddings = _sample_embeddings()
    last = -INTERVAL

    def print_state(state: SearchState) -> None:
        nonlocal last
        if state.seconds >= last + INTERVAL:
            last = state.seconds
            position = f"sweep {state.sweep + 1}, block {state.block}"
            print(f"after {state.seconds:.0f} s ({position}): score {1 - state.value:.4f}", flush=True)

    print(f"{CHOSEN:,} of {LARGE_STIMULI:,} stimuli, {LARGE_MODELS} models of {WIDTH} columns:")
    tracemalloc.start()
    best, state = worst_stimulus_subset(embeddings, CHOSEN, seconds=SECONDS, keep=print_state)
    more = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert state is not None
    size = sum(each.nbytes for each in embeddings)
    print(f"after {state.seconds:.0f} s: score {1 - best.value:.4f}")
    print(f"embeddings {size / 2**30:.1f} GiB, search {more / 2**30:.2f} GiB more at its peak")

    catalog, generator = CentredCatalog(embeddings, CHOSEN), np.random.default_rng(0)
    start, scores = time.monotonic(), []
    while time.monotonic() < start + SECONDS:
        scores.append(1 - catalog.mean_cka(generator.choice(LARGE_STIMULI, CHOSEN, replace=False)))
    print(f"best of {len(scores)} random submissions in the same time: {max(scores):.4f}")


def _sample_embeddings() -> list[NDArray[np.float32]]:
    """Return random embeddings of models that agree on some stimuli more than on others."""
    generator = np.random.default_rng(0)
    strengths = np.linspace(2, 0.2, SHARED, dtype=np.float32)
    shared = generator.standard_normal((LARGE_STIMULI, SHARED), dtype=np.float32) * strengths
    own = generator.uniform(0.2, 1.4, (LARGE_STIMULI, 1)).astype(np.float32)
    embeddings = []
    for _ in range(LARGE_MODELS):
        rows = generator.standard_normal((LARGE_STIMULI, WIDTH), dtype=np.float32)
        rows *= own
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


def _run(folder: Path, *command: str) -> float:
    variables = {"HACKATHON_DATASET_ROOT": str(folder), "WANDB_MODE": "offline"}
    return run(*command, cache=folder / "cache", **variables).seconds


if __name__ == "__main__":
    main()

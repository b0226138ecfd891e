"""The leaderboard of stored traces, from the command line: 10,000 in several shapes, 39 settings, and a million."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

EVALUATIONS, VALIDATION, BACKBONES = 500, 1_000, 3
# Settings, methods and orderings.
SIZES = ((1, 100, 100), (10, 10, 100), (1, 10, 1_000), (125, 5, 16), (1_000, 2, 5), (39, 14, 100))
LARGE = ((100, 10, 100), (1, 30, 3_333), (10, 100, 100), (1_000, 10, 100))


def fill(folder: Path, settings: int, methods: int, orderings: int) -> None:
    """Store traces that rise to 90 %, slower for later methods.

    Args:
        folder: Folder of the ledger.
        settings: Data sets on three backbones each.
        methods: Methods of every setting.
        orderings: Traces of every method.
    """
    generator = np.random.default_rng(0)
    with Ledger(folder) as ledger:
        for setting in range(settings):
            dataset, backbone = f"data {setting // BACKBONES}", f"net {setting % BACKBONES}"
            feed = {"batch_size": 1, "evaluate_every": 1, "validation_size": VALIDATION}
            digests = {"weights_sha256": f"{backbone:0>64}", "train_photos_sha256": f"{dataset:0>64}"}
            description = {"dataset": dataset, "backbone": backbone, "weights": "DEFAULT"}
            stream = ledger.record({**feed, **digests}, description=description)

            for method in range(methods):
                kind = {"class": f"headstart.modules.Mine{method}", "hyperparameters": {}}
                digest = ledger.record(kind, description={"name": f"method {method}" if method else "baseline"})
                rise = generator.uniform(25, 100, (orderings, 1)) * (1 + method / methods)
                counts = generator.binomial(VALIDATION, 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise))
                ledger.write({TraceKey(stream, digest, k): Trace(trace) for k, trace in enumerate(counts)})


def main(sizes: Sequence[tuple[int, int, int]] = (*SIZES, *LARGE)) -> None:
    """Print the seconds that the command takes, start-up included, and its memory.

    Args:
        sizes: Settings, methods and orderings.
    """
    for settings, methods, orderings in sizes:
        with temporary_folder() as folder:
            fill(folder / "stored", settings, methods, orderings)
            size = (folder / "stored" / "traces.sqlite").stat().st_size / 1e6
            cost = run("evaluate.py", "leaderboard", str(folder / "stored"), f"--output={folder / 'out'}", cache=folder)
            shape = f"{settings} settings of {methods} methods in {orderings} orderings ({size:.0f} MB)"
            print(f"{shape}: {cost}, {cost.processor_seconds:.0f} s of processor time")

"""Tables and reports, from the command line."""

import csv
import json
from pathlib import Path

import numpy as np

from headstart.benchmarks.frame import SHARED, Run, run, temporary_folder
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.store.json_digest import sealed
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

EVALUATIONS, VALIDATION = 500, 1_000
# Settings and methods of a page.
SETTINGS, METHODS = 39, 14
TABLES = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}
# Metrics, sources and targets of a model hub.
HUB = 5, 500, 100


def leaderboard() -> str:
    """How long does `headstart leaderboard` of 10,000 traces take?"""
    return f"{_leaderboard(10, 10, 100)}"


def large_leaderboard() -> str:
    """How long does `headstart leaderboard` of 100,000 traces take?"""
    return f"{_leaderboard(100, 10, 100)}"


def report() -> str:
    """How long does `headstart report` on 39 settings of 14 methods take?"""
    with temporary_folder() as folder:
        page, generator = folder / "report.html", np.random.default_rng(0)
        for setting in range(SETTINGS):
            _write_run(folder / "runs" / f"photos_{setting}", generator)
        cost = run("evaluate.py", "report", str(folder / "runs"), f"--output={page}", cache=folder / "cache")
        return f"{cost}; a page of {page.stat().st_size / 1e6:.1f} MB"


def stability() -> str:
    """How long does `headstart stability` of the paper's two tables take?"""
    tables = (SHARED / "data/stable_transfer").resolve()
    costs = [_stability(tables / file, f"--preset={preset}") for preset, file in TABLES.items()]
    return " and ".join(map(str, costs))


def hub() -> str:
    """How long does `headstart stability` of 500 sources, 100 targets and 5 metrics take?"""
    generator = np.random.default_rng(0)
    performances = generator.uniform(size=HUB[1:])
    with temporary_folder() as folder:
        table = folder / "hub.csv"
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["metric", "source", "target", "score", "performance"])
            for (metric, source, target), score in np.ndenumerate(generator.normal(size=HUB)):
                names = (f"metric {metric}", f"source {source}", f"target {target}")
                writer.writerow([*names, score, performances[source, target]])
        return f"{_stability(table)}"


def _leaderboard(settings: int, methods: int, orderings: int) -> Run:
    """Store traces that rise to 90 %, slower for later methods, and rank the methods."""
    generator = np.random.default_rng(0)
    with temporary_folder() as folder:
        with Ledger(folder / "stored") as ledger:
            for setting in range(settings):
                stream = ledger.record(
                    {"batch_size": 1, "evaluate_every": 1, "validation_size": VALIDATION, "weights_sha256": "0" * 64}
                    | {"train_photos_sha256": f"{setting:0>64}"},
                    description={"dataset": f"data {setting}", "backbone": "net", "weights": "DEFAULT"},
                )
                for method in range(methods):
                    kind = {"class": f"headstart.modules.Mine{method}", "hyperparameters": {}}
                    digest = ledger.record(kind, description={"name": f"method {method}" if method else "baseline"})
                    rise = generator.uniform(25, 100, (orderings, 1)) * (1 + method / methods)
                    counts = generator.binomial(VALIDATION, 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise))
                    ledger.write({TraceKey(stream, digest, k): Trace(trace) for k, trace in enumerate(counts)})
        return run("evaluate.py", "leaderboard", str(folder / "stored"), f"--output={folder / 'out'}", cache=folder)


def _write_run(folder: Path, generator: np.random.Generator) -> None:
    """Write the files of a run that the report reads, with 100 traces of each method that rise to 90 %."""
    folder.mkdir(parents=True)
    methods = ["baseline", *(f"method_{number}" for number in range(1, METHODS))]
    rise = generator.uniform(10, 200, (METHODS, 1, 1)) * generator.uniform(0.7, 1.4, (METHODS, 100, 1))

    curves = Curves(
        methods=methods,
        orderings=np.arange(100),
        samples_seen=np.arange(1, EVALUATIONS + 1),
        correct=generator.binomial(VALIDATION, 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise)),
        validation_size=VALIDATION,
        all_correct=VALIDATION,
        measure="accuracy",
        limit=EVALUATIONS,
        threshold=0.8,
        consecutive=10,
    )

    fed = {"dataset": folder.name, "backbone": "mobilenet_v2", "weights": "DEFAULT", "batch_size": 1, "seed": 0}
    described = {"class_path": "headstart.modules.GradientDescent", "init_args": {}, "hyperparameters": {}}
    document = {
        "schema": 2,
        "complete": True,
        "stopped_because": "the sample limit was reached",
        "methods": {name: {"key": described} for name in methods},
        "protocol": {"order": "shuffled", "max_samples": EVALUATIONS, **fed, "orderings": 100, "first_ordering": 0},
    }

    model = {"baseline": described, "methods": dict.fromkeys(methods[1:], described)}
    config = {"model": model, "data": {"init_args": {"backbone": {"name": "mobilenet_v2", "registry": None}}}}
    files = {"curves.npz": curves.content(), "config.yaml": json.dumps(config).encode()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "results.json").write_text(json.dumps(sealed(document, files)))


def _stability(table: Path, *options: str) -> Run:
    with temporary_folder() as folder:
        where = f"--table={table}", f"--output={folder / 'out'}", "--logger=false"
        return run("evaluate.py", "stability", *where, *options, cache=folder)


BENCHMARKS = (leaderboard, large_leaderboard, report, stability, hub)

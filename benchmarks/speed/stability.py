"""Both stability studies, one of 2.7 million pools, one of a model hub whose pools are drawn, and large tables."""

import csv
import json
from pathlib import Path

import numpy as np

from headstart.benchmarks.speed.frame import run, temporary_folder, timed
from headstart.contract.tables.table import read_table

SCENARIOS = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}
LARGE, LARGE_POOL = (5, 24, 9), 12
# Metrics, sources and targets of a model hub.
HUB = 5, 500, 100
# Metrics, sources and targets of tables of a million rows, in which one or another has the most.
MILLION = ((5, 50, 4_000), (5, 447, 447), (2, 100_000, 5))


def main(tables: Path = Path("../shared/data/stable_transfer"), large: bool = True) -> None:
    """Print the time and memory of studies from the command line, and the time of reading tables.

    Args:
        tables: Folder of the two released tables.
        large: Whether to run the large study and read the large tables, too; it takes minutes.
    """
    with temporary_folder() as folder:
        for preset, file in SCENARIOS.items():
            _study(folder, preset, tables.resolve() / file, f"--preset={preset}")
        if large:
            table = _write_table(folder / "large.csv", LARGE)
            _study(folder, "large", table, f"--pool_size={LARGE_POOL}", "--pools=3000000")
            _study(folder, "hub", _write_table(folder / "hub.csv", HUB))

        for shape in MILLION if large else ():
            table = _write_table(folder / "million.csv", shape)
            seconds = timed(lambda: read_table(table))[0]  # noqa: B023
            print(f"reading {shape[0]} metrics, {shape[1]:,} sources and {shape[2]:,} targets: {seconds:.1f} s")


def _study(folder: Path, name: str, table: Path, *options: str) -> None:
    options = f"--table={table}", f"--output={folder / name}", *options, "--logger=false"
    cost = run("evaluate.py", "stability", *options, cache=folder)
    document = json.loads((folder / name / "stability.json").read_text())
    print(
        f"{name}, {document['experiments']:,} experiments: {cost}, processor {cost.processor_seconds:.1f} s", flush=True
    )
    if document["drawn_pools"]:
        print(f"standard errors of {document['drawn_pools']:,} drawn pools: {document['standard_error']}", flush=True)


def _write_table(path: Path, shape: tuple[int, int, int]) -> Path:
    """Write a table of random scores and performances by so many metrics, sources and targets."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=shape)
    performances = generator.uniform(size=shape[1:])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "source", "target", "score", "performance"])
        for (metric, source, target), score in np.ndenumerate(scores):
            names = (f"metric {metric}", f"source {source}", f"target {target}")
            writer.writerow([*names, score, performances[source, target]])
    return path

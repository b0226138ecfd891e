"""Both stability studies against loops over experiments and pairs, a study of 2.7 million pools, and large tables."""

from __future__ import annotations

import csv
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonargparse
import numpy as np
from scipy import stats

from headstart.benchmarks.speed.frame import run, temporary_folder, timed
from headstart.evaluation.stability.table import TransferTable, read_table
from headstart.metrics.ranking.ranking_measures import kendall, pearson, rel_at_1, weighted_kendall

SCENARIOS = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}
MEASURES = (weighted_kendall, kendall, pearson, rel_at_1)
SAMPLE = 200
SOURCES, TARGETS, METRICS, POOL = 24, 9, 5, 12
# Metrics, sources and targets of tables of a million rows, in which one or another has the most.
MILLION = ((5, 50, 4_000), (5, 447, 447), (2, 100_000, 5))


def main(tables: str = "../shared/data/stable_transfer", large: bool = True) -> None:
    """Time both presets from the command line, extrapolate the loops from a sample, and run a large study.

    Args:
        tables: Folder of the two released tables.
        large: Whether to run the large study, too; it takes minutes.
    """
    loops = commands = 0.0
    with temporary_folder() as folder:
        for preset, file in SCENARIOS.items():
            options = [f"--table={Path(tables) / file}", f"--output={folder / preset}", f"--preset={preset}"]
            measured = run("evaluate.py", "stability", *options, "--logger=false", cache=folder)
            document = json.loads((folder / preset / "stability.json").read_text())
            loop = _loop(read_table(Path(tables) / file, trainable=True, exclude_target=True), document)
            print(
                f"{preset}: {measured.seconds:.1f} s and {measured.peak_mb:.0f} MB from the command line, "
                f"loops {loop / 3600:.0f} h: ratio {loop / measured.seconds:,.0f}"
            )
            loops, commands = loops + loop, commands + measured.seconds

        print(f"both: {commands:.1f} s, loops {loops / 3600:.0f} h: ratio {loops / commands:,.0f}")
        if large:
            _write_table(folder / "large.csv", (METRICS, SOURCES, TARGETS))
            options = [f"--table={folder / 'large.csv'}", f"--output={folder / 'large'}", f"--pool_size={POOL}"]
            measured = run("evaluate.py", "stability", *options, "--logger=false", cache=folder)
            experiments = json.loads((folder / "large" / "stability.json").read_text())["experiments"]
            print(f"{experiments:,} experiments: {measured.seconds:.0f} s and {measured.peak_mb:.0f} MB")

        for shape in MILLION:
            _write_table(folder / "million.csv", shape)
            seconds = timed(lambda: read_table(folder / "million.csv", trainable=True, exclude_target=True))[0]
            print(f"reading {shape[0]} metrics, {shape[1]:,} sources and {shape[2]:,} targets: {seconds:.1f} s")


def _loop(table: TransferTable, document: dict[str, Any]) -> float:
    """Time scipy on a sample of experiments and of pairs of outcomes, and extrapolate to all, in seconds."""
    generator = np.random.default_rng(0)
    outcomes = []
    start = time.perf_counter()
    for number in range(SAMPLE):
        target = int(generator.integers(len(table.targets)))
        sources = np.flatnonzero(np.arange(len(table.sources)) != table.own[target])
        pool = generator.choice(sources, document["pool_size"], replace=False)
        measure = MEASURES[number % len(MEASURES)]
        performances = table.performances[pool, target]
        outcomes.append([measure(scores[pool, target], performances) for scores in table.scores])
    experiment = (time.perf_counter() - start) / SAMPLE
    pair = timed(lambda: [stats.kendalltau(first, second) for first, second in pairwise(outcomes)])[0] / (SAMPLE - 1)
    print(f"scipy: {1e6 * experiment:.0f} us an experiment, {1e6 * pair:.0f} us a pair")
    pairs = int(sum(document["setup_stability_pairs"].values()))
    return experiment * int(document["experiments"]) + pair * pairs


def _write_table(path: Path, shape: tuple[int, int, int]) -> None:
    """Write a plain table of random scores and performances by so many metrics, sources and targets."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=shape)
    performances = generator.uniform(size=shape[1:])
    rows = [
        [f"metric {metric}", f"source {source}", f"target {target}", score, performances[source, target]]
        for (metric, source, target), score in np.ndenumerate(scores)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["metric", "source", "target", "score", "performance"], *rows])


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

"""A table of four metrics on six sources and four targets whose stability follows without computation."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from headstart import evaluate

SOURCES, TARGETS = 6, 4
PERFORMANCES = np.array([0.1, 0.3, 0.4, 0.7, 0.8, 0.9])
# The scores of an accurate metric, of its reverse, and of two between them.
SCORES = {
    "right": PERFORMANCES,
    "gbc": -PERFORMANCES,
    "h_score": PERFORMANCES[[1, 0, 2, 3, 4, 5]],
    "leep": PERFORMANCES[[3, 0, 1, 2, 4, 5]],
}


def write_table(path: Path, targets: list[str], scores: dict[str, Any]) -> Path:
    """Write a plain table in which a metric's scores `[sources]` are the same for all targets but scaled."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "source", "target", "score", "performance"])
        for metric, values in scores.items():
            for scale, target in enumerate(targets, start=1):
                for source, value in enumerate(values):
                    writer.writerow([metric, f"s{source}", target, scale * value, PERFORMANCES[source] / scale])
    return path


def run(table: Path, output: Path, *options: str) -> dict[str, Any]:
    evaluate.main(["stability", f"--table={table}", f"--output={output}", "--logger=false", *options])
    document: dict[str, Any] = json.loads((output / "stability.json").read_text())
    return document

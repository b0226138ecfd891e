"""Audits of a table whose performances rise with the size of the sources on every target."""

import csv
import json
from pathlib import Path
from typing import Any

from headstart import evaluate

SOURCES = ["small", "middle", "large", "huge"]
TARGETS = ["t0", "t1", "t2"]


def write_table(path: Path, metrics: dict[str, Any] | None = None) -> Path:
    """Write performances that rise with the size on every target, and the scores `[sources]` of metrics."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", "performance", *(["metric", "score"] if metrics else [])])
        for name, scores in (metrics or {"": [0] * 4}).items():
            for target in TARGETS:
                for index, source in enumerate(SOURCES):
                    rest = [name, scores[index]] if metrics else []
                    writer.writerow([source, target, 0.2 + 0.2 * index, *rest])
    return path


def run(table: Path, output: Path, *options: str) -> dict[str, Any]:
    evaluate.main(["audit", f"--table={table}", f"--output={output}", "--logger=false", *options])
    document: dict[str, Any] = json.loads((output / "audit.json").read_text())
    return document

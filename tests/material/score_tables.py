"""Tables of scores and performances whose answers follow without computation, and the commands that read them."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart import evaluate
from headstart.contract.tables.table import TransferTable
from headstart.metrics.arrays import Flags, Floats

# The scores of an accurate metric, of its reverse, and of two between them, on six sources.
PERFORMANCES = np.array([0.1, 0.3, 0.4, 0.7, 0.8, 0.9])
SCORES = {
    "right": PERFORMANCES,
    "gbc": -PERFORMANCES,
    "h_score": PERFORMANCES[[1, 0, 2, 3, 4, 5]],
    "leep": PERFORMANCES[[3, 0, 1, 2, 4, 5]],
}
# Sources whose performances rise with their size on every target.
SIZES, TARGETS = ["small", "middle", "large", "huge"], ["t0", "t1", "t2"]


def number(kind: str, count: int) -> list[str]:
    return [f"{kind}{index}" for index in range(count)]


def make_table(
    scores: Floats, performances: Floats, own: Flags | None = None, **names: Sequence[str] | None
) -> TransferTable:
    """Build a table of scores `[m, n, t]` and performances `[n, t]`; by default its names are m0, s0, t0 and so on."""
    kinds = zip(("metrics", "sources", "targets"), scores.shape, strict=True)
    metrics, sources, targets = (names.get(kind) or number(kind[0], count) for kind, count in kinds)
    return TransferTable.of_arrays(metrics, sources, targets, scores, performances, own)


def scaled_table(targets: Sequence[str], scores: Mapping[str, NDArray[np.float64]]) -> TransferTable:
    """Build a table in which the scores `[sources]` of a metric are the same for all targets but scaled."""
    scales = np.arange(1.0, len(targets) + 1)
    values = np.array(list(scores.values()))[:, :, None] * scales
    return make_table(values, PERFORMANCES[:, None] / scales, metrics=list(scores), targets=targets)


def rising_table(scores: Mapping[str, Sequence[float]] | None = None) -> TransferTable:
    """Build a table of performances that rise with the size, and the scores `[sources]` of metrics on every target."""
    values = np.array(list((scores or {}).values()), dtype=np.float64).reshape(-1, 4, 1).repeat(3, axis=2)
    performances = np.repeat(0.2 + 0.2 * np.arange(4.0)[:, None], 3, axis=1)
    return make_table(values, performances, metrics=list(scores or {}), sources=SIZES, targets=TARGETS)


def write_table(path: Path, table: TransferTable) -> Path:
    """Write a table in the long layout, or its performances alone if it has no metrics."""
    of_metrics = zip(table.metrics, table.scores, strict=True) if table.metrics else [("", 0 * table.performances)]
    rows = [
        (metric, source, target, scores[n, t], table.performances[n, t])
        for metric, scores in of_metrics
        for t, target in enumerate(table.targets)
        for n, source in enumerate(table.sources)
    ]
    frame = pd.DataFrame(rows, columns=["metric", "source", "target", "score", "performance"])
    (frame if table.metrics else frame.drop(columns=["metric", "score"])).to_csv(path, index=False)
    return path


def run(command: str, table: Path, output: Path, *options: str) -> dict[str, Any]:
    """Run a command on a table, by default without figures; return the document that it writes."""
    plain = ["--logger=false", *["--figure_formats=[]"] * (command == "audit")]
    evaluate.main([command, f"--table={table}", f"--output={output}", *plain, *options])
    document: dict[str, Any] = json.loads((output / f"{command}.json").read_text())
    return document


run_stability, run_audit = partial(run, "stability"), partial(run, "audit")

"""The table of the outcomes of all experiments, written block by block, so that it is never in memory as a whole."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.study import TIED
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.files import replacing
from headstart.output.markup import escape_cell

FILE = "outcomes.csv.gz"


@contextmanager
def open_outcomes(path: Path, table: TransferTable) -> Iterator[Callable[[Indices, Floats], object]]:
    """Open the table; the context returns a function that writes the pools and outcomes of a block.

    Pools are `[pools, k]`, outcomes `[pools, t, e, m]`.

    Args:
        path: The file.
        table: The table of the study.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as partial,
        partial.open("wb") as file,
        # Without a time and a file name in it, the same outcomes give the same bytes.
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
    ):
        csv.writer(text, lineterminator="\n").writerow(
            ["sources", "target", "measure", "winners", *map(escape_cell, table.metrics)]
        )
        yield lambda pools, outcomes: text.write(_rows(table, pools, outcomes))


def _rows(table: TransferTable, pools: Indices, outcomes: Floats) -> str:
    """Return the CSV rows of a block, one for each experiment."""
    sources, targets, metrics = (list(map(escape_cell, its)) for its in (table.sources, table.targets, table.metrics))
    index = pd.MultiIndex.from_product([[join_names([sources[i] for i in pool]) for pool in pools], targets, MEASURES])
    values = outcomes.reshape(-1, len(metrics))
    defined = np.where(np.isnan(values), -np.inf, values)
    best = defined.max(axis=1, keepdims=True)
    won = (defined >= best - TIED) & np.isfinite(best)
    # There are few different sets of winners.
    kinds, which = np.unique(won, axis=0, return_inverse=True)
    names = [join_names([name for name, wins in zip(metrics, kind, strict=True) if wins]) for kind in kinds]

    rows = pd.DataFrame(values, index)
    rows.insert(0, "winners", np.array(names, dtype=object)[which.ravel()])
    used = ~table.own[pools].any(axis=1)
    rows = rows[np.repeat(used.ravel(), len(MEASURES))]
    return str(rows.to_csv(header=False, lineterminator="\n"))


def join_names(names: Sequence[str]) -> str:
    """Join names to one field with semicolons, in which a name with a semicolon is quoted."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(names)
    return text.getvalue()

"""Files of the outcomes of all experiments, written block by block, so that they are never in memory as a whole."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.contract.tables.table import TransferTable
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.files import replacing
from headstart.output.markup import escape_cell

# True writes arrays, `csv` writes a table, False writes nothing.
OutcomeFile = bool | Literal["csv"]
CSV, ARRAYS = "outcomes.csv.gz", ("outcomes.npy", "outcome_pools.npy")
WriteBlock = Callable[[Indices, Floats], object]


def outcome_files(folder: Path, kind: OutcomeFile, pools: Pools) -> list[Path]:
    """Return the paths of the files that outcomes are written to; an array of drawn pools has one of their sources."""
    arrays = ARRAYS if pools.drawn else ARRAYS[:1]
    return [folder / name for name in ((CSV,) if kind == "csv" else arrays if kind else ())]


def open_outcomes(
    folder: Path, kind: OutcomeFile, table: TransferTable, pools: Pools, tie_tolerance: float
) -> AbstractContextManager[WriteBlock]:
    """Open the files of outcomes; the context returns a function that writes the pools and outcomes of a block.

    Pools are `[pools, k]`, outcomes `[pools, t, e, m]`.

    Args:
        folder: Folder to write to.
        kind: Files to write.
        table: The table of the study.
        pools: The pools of the study.
        tie_tolerance: Outcomes that are this close to the best one are best, too.
    """
    if not kind:
        return nullcontext(lambda pools, outcomes: None)
    folder.mkdir(parents=True, exist_ok=True)
    return _csv_file(folder / CSV, table, tie_tolerance) if kind == "csv" else _npy_files(folder, table, pools)


@contextmanager
def _npy_files(folder: Path, table: TransferTable, pools: Pools) -> Iterator[WriteBlock]:
    shape = pools.count, len(table.targets), len(MEASURES), len(table.metrics)
    outcomes_path, pools_path = (folder / name for name in ARRAYS)
    with ExitStack() as stack:
        write_outcomes = stack.enter_context(_npy_file(outcomes_path, "<f8", shape))
        if pools.drawn:
            write_pools = stack.enter_context(_npy_file(pools_path, "<i8", (pools.count, pools.size)))
            yield lambda block, outcomes: (write_pools(block), write_outcomes(outcomes))
        else:
            yield lambda block, outcomes: write_outcomes(outcomes)
            # Those of an earlier array.
            pools_path.unlink(missing_ok=True)


@contextmanager
def _npy_file(path: Path, kind: str, shape: tuple[int, ...]) -> Iterator[Callable[[NDArray[Any]], object]]:
    """Open an array of some data type and shape; the context returns a function that writes the next of its rows."""
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    with replacing(path) as partial, partial.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda rows: file.write(rows.astype(kind).tobytes())


@contextmanager
def _csv_file(path: Path, table: TransferTable, tie_tolerance: float) -> Iterator[WriteBlock]:
    with (
        replacing(path) as partial,
        partial.open("wb") as file,
        # Without a time and a file name in it, the same outcomes give the same bytes.
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
    ):
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["sources", "target", "measure", "winners", *map(escape_cell, table.metrics)])
        yield lambda pools, outcomes: writer.writerows(_rows(table, pools, outcomes, tie_tolerance))


def _rows(table: TransferTable, pools: Indices, outcomes: Floats, tie_tolerance: float) -> Iterator[list[Any]]:
    """Yield a CSV row for each experiment."""
    defined = np.where(np.isnan(outcomes), -np.inf, outcomes)
    best = defined.max(axis=-1, keepdims=True)
    won = ((defined >= best - tie_tolerance) & np.isfinite(best)).tolist()
    source_names, targets, metrics = (
        list(map(escape_cell, names)) for names in (table.sources, table.targets, table.metrics)
    )
    targets_with_own = [(target, set(np.flatnonzero(its))) for target, its in zip(targets, table.own.T, strict=True)]

    for pool, values, winning in zip(pools.tolist(), outcomes.tolist(), won, strict=True):
        sources = join_names([source_names[i] for i in pool])
        for (target, own), target_values, target_wins in zip(targets_with_own, values, winning, strict=True):
            if not own.isdisjoint(pool):
                continue
            for measure, row, wins in zip(MEASURES, target_values, target_wins, strict=True):
                winners = join_names([name for name, is_winner in zip(metrics, wins, strict=True) if is_winner])
                # NaN is not equal to itself.
                yield [sources, target, measure, winners, *(value if value == value else "" for value in row)]


def join_names(names: Sequence[str]) -> str:
    """Join names to one field with semicolons, in which a name with a semicolon is quoted."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(names)
    return text.getvalue()

"""A ledger is read while others write to it, and where it cannot be written."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader


def counts(*correct: int) -> np.ndarray:
    return np.array(correct, dtype=np.int64)


def contents(reader: LedgerReader, stream: str) -> dict[tuple[str, int], list[int]]:
    return {key: stored.tolist() for key, stored in reader.traces(stream).counts.items()}


def fill(folder: Path) -> tuple[str, str]:
    with Ledger(folder) as ledger:
        # Nothing was measured of the last of each.
        stream, _ = (ledger.record({"seed": seed}, description={"dataset": "pets"}) for seed in range(2))
        method, _ = (ledger.record({"class": name}, description={"name": name}) for name in ("a", "b"))
        ledger.write({TraceKey(stream, method, k): Trace(counts(k, 70_000)) for k in (3, 1)})
    return stream, method


def test_descriptions_are_no_part_of_the_digest_and_the_first_stays(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        digest = ledger.record({"a": 1}, description={"name": "first"})
        assert ledger.record({"a": 1}, description={"name": "second"}) == ledger.record({"a": 1}) == digest
        assert ledger.origin(digest) == {"a": 1, "told": {"name": "first"}}


def test_reading_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    stream, _ = fill(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, *tmp_path.rglob("*"))}
    with LedgerReader(tmp_path) as reader:
        reader.traces(stream)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._base.execute("DELETE FROM traces")
        assert {path: path.stat().st_mtime_ns for path in (tmp_path, *tmp_path.rglob("*"))} == before


def test_a_transaction_that_goes_on_is_not_seen(tmp_path: Path) -> None:
    stream, method = fill(tmp_path)
    with Ledger(tmp_path) as ledger, LedgerReader(tmp_path) as reader:
        before = contents(reader, stream)
        with ledger._transaction():
            ledger._base.execute("DELETE FROM traces")
            assert contents(reader, stream) == before
        assert contents(reader, stream) == {}
        ledger.write({TraceKey(stream, method, 0): Trace(counts(9))})
        assert contents(reader, stream) == {(method, 0): [9]}


def killed_while_it_wrote(folder: Path, copy: Path) -> Path:
    """Copy a ledger in the middle of a transaction that has reached the disk, as a power cut leaves it."""
    with sqlite3.connect(folder / FILE, isolation_level=None) as base:
        base.execute("PRAGMA cache_size = 1")
        base.execute("BEGIN IMMEDIATE")
        base.execute("DELETE FROM traces")
        base.executemany("INSERT INTO documents VALUES (?, ?, 0)", [(f"{k}", "x" * 2000) for k in range(200)])
        shutil.copytree(folder, copy)
        base.execute("ROLLBACK")
    assert (copy / f"{FILE}-journal").stat().st_size > 512
    return copy


def test_partial_writes_of_a_killed_process_are_undone(tmp_path: Path) -> None:
    stream, method = fill(tmp_path / "whole")
    with LedgerReader(killed_while_it_wrote(tmp_path / "whole", tmp_path / "killed")) as reader:
        assert contents(reader, stream) == {(method, 1): [1, 70_000], (method, 3): [3, 70_000]}

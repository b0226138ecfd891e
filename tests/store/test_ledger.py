"""A ledger that several processes write and others read, which are killed, or whose disk is full."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, LedgerError, Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader

ROOT = Path(__file__).parents[2]
KEYS = [TraceKey("s", method, ordering) for method in ("a", "b") for ordering in range(3)]


def trace(*correct: int, diverged: int | None = None) -> Trace:
    return Trace(np.array(correct, dtype=np.int64), diverged)


def contents(ledger: Ledger, keys: list[TraceKey] = KEYS) -> dict[TraceKey, tuple[list[int], int | None]]:
    return {key: (actual.correct.tolist(), actual.diverged) for key, actual in ledger.read(keys).items()}


def counts(reader: LedgerReader, stream: str) -> dict[tuple[str, int], list[int]]:
    return {key: stored.tolist() for key, stored in reader.traces(stream).counts.items()}


def fill(folder: Path) -> tuple[str, str]:
    """Store two traces, and return the digests of their stream and method."""
    with Ledger(folder) as ledger:
        # Nothing was measured of the last of each.
        stream, _ = (ledger.record({"seed": seed}, description={"dataset": "pets"}) for seed in range(2))
        method, _ = (ledger.record({"class": name}, description={"name": name}) for name in ("a", "b"))
        ledger.write({TraceKey(stream, method, k): trace(k, 70_000) for k in (3, 1)})
    return stream, method


def in_another_process(folder: Path, body: str) -> subprocess.Popen[str]:
    code = (
        "import sys, numpy as np\nfrom pathlib import Path\nfrom headstart.store.ledger import *\n"
        f"ledger = Ledger(Path({str(folder)!r}))\n{body}"
    )
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_written_traces_are_read_by_another_process(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ledger.write({KEYS[0]: trace(1, 2, 70_000), KEYS[4]: trace(0, diverged=0)})
        ledger.write({KEYS[0]: trace(1, 2, 70_000, 5)})
    with Ledger(tmp_path / "ledger") as ledger:
        assert contents(ledger) == {KEYS[0]: ([1, 2, 70_000, 5], None), KEYS[4]: ([0], 0)}


def test_a_trace_is_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    other = in_another_process(tmp_path, 'ledger.claim([TraceKey("s", "a", 0)]); print("held", flush=True); input()')
    with Ledger(tmp_path) as ledger:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        held = ledger.claim(KEYS)
        assert list(held) == [KEYS[0]]
        assert str(other.pid) in held[KEYS[0]]
        other.kill()
        other.wait()
        assert ledger.claim(KEYS) == {}
        assert len(list((tmp_path / "holders").iterdir())) == 1
        ledger.release(KEYS[:1])
        with Ledger(tmp_path) as third:
            assert set(third.claim(KEYS)) == set(KEYS[1:])
    with Ledger(tmp_path) as ledger:
        assert ledger.claim(KEYS) == {}


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    body = 'for k in range(40): ledger.write({TraceKey("s", %r, k): Trace(np.array([k, k + 1]))})'
    others = [in_another_process(tmp_path, body % name) for name in "abc"]
    assert [other.wait() for other in others] == [0, 0, 0]
    with Ledger(tmp_path) as ledger:
        keys = [TraceKey("s", name, k) for name in "abc" for k in range(40)]
        assert contents(ledger, keys) == {key: ([key.ordering, key.ordering + 1], None) for key in keys}


def test_a_killed_writer_leaves_whole_traces(tmp_path: Path) -> None:
    body = (
        "n = 0\nwhile True:\n    n += 1\n"
        '    ledger.write({TraceKey("s", "m", k): Trace(np.full(n, n)) for k in range(20)})\n'
        '    n == 3 and print("begun", flush=True)'
    )
    other = in_another_process(tmp_path, body)
    assert other.stdout is not None
    assert other.stdout.readline() == "begun\n"
    other.kill()
    other.wait()
    with Ledger(tmp_path) as ledger:
        result = contents(ledger, [TraceKey("s", "m", k) for k in range(20)])
    assert len(result) == 20
    ((correct, _),) = {(tuple(each), diverged) for each, diverged in result.values()}
    assert correct == (len(correct),) * len(correct)


def test_a_full_disk_stores_nothing_of_the_transaction(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.write({KEYS[0]: trace(1)})
        ledger._base.execute("PRAGMA max_page_count = 12")
        with pytest.raises(LedgerError, match="full"):
            ledger.write({KEYS[0]: trace(1, 2), KEYS[1]: Trace(np.zeros(100_000, dtype=np.int64))})
        assert contents(ledger) == {KEYS[0]: ([1], None)}
        ledger.write({KEYS[0]: trace(1, 2)})
        assert contents(ledger) == {KEYS[0]: ([1, 2], None)}


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


def test_partial_writes_of_a_killed_process_are_undone(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    stream, method = fill(whole)
    # A transaction that has reached the disk, as a power cut leaves it.
    with sqlite3.connect(whole / FILE, isolation_level=None) as base:
        base.execute("PRAGMA cache_size = 1")
        base.execute("BEGIN IMMEDIATE")
        base.execute("DELETE FROM traces")
        base.executemany("INSERT INTO documents VALUES (?, ?, 0)", [(f"{k}", "x" * 2000) for k in range(200)])
        shutil.copytree(whole, killed)
        base.execute("ROLLBACK")
    assert (killed / f"{FILE}-journal").stat().st_size > 512
    with LedgerReader(killed) as reader:
        assert counts(reader, stream) == {(method, 1): [1, 70_000], (method, 3): [3, 70_000]}

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import LedgerError, Trace, TraceKey

ROOT = Path(__file__).parents[2]
KEYS = [TraceKey("s", method, ordering) for method in ("a", "b") for ordering in range(3)]


def trace(*correct: int, diverged: int | None = None) -> Trace:
    return Trace(np.array(correct, dtype=np.int64), diverged)


def contents(ledger: Ledger, keys: list[TraceKey]) -> dict[TraceKey, tuple[list[int], int | None]]:
    return {key: (actual.correct.tolist(), actual.diverged) for key, actual in ledger.read(keys).items()}


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
        assert contents(ledger, KEYS) == {KEYS[0]: ([1, 2, 70_000, 5], None), KEYS[4]: ([0], 0)}


def test_a_trace_is_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    other = in_another_process(tmp_path, 'ledger.claim([TraceKey("s", "a", 0)]); print("held", flush=True); input()')
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with Ledger(tmp_path) as ledger:
        held = ledger.claim(KEYS)
        assert list(held) == [KEYS[0]]
        assert str(other.pid) in held[KEYS[0]]
        other.send_signal(signal.SIGKILL)
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
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    with Ledger(tmp_path) as ledger:
        result = contents(ledger, [TraceKey("s", "m", k) for k in range(20)])
    lengths = {len(correct) for correct, _ in result.values()}
    assert len(result) == 20
    assert len(lengths) == 1
    assert all(correct == [len(correct)] * len(correct) for correct, _ in result.values())


def test_a_full_disk_stores_nothing_of_the_transaction(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.write({KEYS[0]: trace(1)})
        ledger._base.execute("PRAGMA max_page_count = 12")
        with pytest.raises(LedgerError, match="full"):
            ledger.write({KEYS[0]: trace(1, 2), KEYS[1]: Trace(np.zeros(100_000, dtype=np.int64))})
        assert contents(ledger, KEYS) == {KEYS[0]: ([1], None)}
        ledger.write({KEYS[0]: trace(1, 2)})
        assert contents(ledger, KEYS) == {KEYS[0]: ([1, 2], None)}

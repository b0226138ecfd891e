"""Threads and processes that ask for rows of one table share the work, and wait for no others."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from headstart.store.json_digest import digest_of
from headstart.store.row_store import RowStore
from headstart.tests.material.counted_rows import forking
from headstart.tests.material.named_rows import KEY, NOTES, NamedRows, Table, row_of


def in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_nobody_waits_for_rows_of_no_concern(table: Table) -> None:
    started, ended = threading.Event(), threading.Event()

    def pause() -> None:
        started.set()
        assert ended.wait(60)

    table.get("ab", computed="ab")
    slow = in_background(lambda: Table(table.folder).get("cdef", computed="cdef", pause=pause))
    assert started.wait(60)
    # New rows, stored ones, and those that are finished already of the slow ones.
    other = in_background(lambda: [table.get("gha", computed="gh"), table.get("dcb", computed="")])
    other.join(60)
    assert not other.is_alive()
    last = in_background(lambda: Table(table.folder).get("fix", computed="ix"))
    last.join(0.2)
    assert last.is_alive()
    ended.set()
    for thread in (slow, last):
        thread.join(60)
        assert not thread.is_alive()
    table.get("abcdefghix", computed="")


def test_stored_rows_need_no_lock(table: Table) -> None:
    table.get("ab", computed="ab")
    with FileLock(table.folder / digest_of(KEY) / "lock"):
        reading = in_background(lambda: table.get("ba", computed=""))
        reading.join(60)
    assert not reading.is_alive()


def ask_slowly(folder: Path, number: int) -> None:
    """Ask for six of eight rows, and leave a line for every row that is computed."""
    names = list("abcdefgh"[number : number + 6])

    def compute(indices: list[int]) -> NamedRows:
        requested = [names[index] for index in indices]
        with (folder / "computed").open("a") as file:
            file.write("".join(requested))
        return NamedRows(requested, NOTES, pause=lambda: time.sleep(0.05))

    result = RowStore(folder / "rows").get(KEY, names, compute)
    np.save(folder / f"{number}.npy", result.rows)


def check_side_by_side(folder: Path, workers: Sequence[Any]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert sorted((folder / "computed").read_text()) == list("abcdefgh")
    for number in range(3):
        rows = np.stack([row_of(name) for name in "abcdefgh"[number : number + 6]])
        assert np.array_equal(np.load(folder / f"{number}.npy"), rows)


def test_threads_share_the_work(tmp_path: Path) -> None:
    check_side_by_side(tmp_path, [threading.Thread(target=ask_slowly, args=(tmp_path, n)) for n in range(3)])


@forking
def test_processes_share_the_work(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=ask_slowly, args=(tmp_path, n)) for n in range(3)]
    check_side_by_side(tmp_path, processes)
    assert [process.exitcode for process in processes] == [0, 0, 0]

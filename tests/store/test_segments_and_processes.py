"""Segments of rows survive a killed writer, a full disk and a read-only cache, and others wait for a writer."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.store.row_store import RowStore, StoredRows
from headstart.store.segments import StoreError
from headstart.tests.material.counted_rows import KEY, NAMES, ROWS, CountedRows, ask, forking, journal_of


def in_a_process(action: Callable[[], object]) -> int | None:
    """Run something in a forked process, whose limits and rights are its own."""
    process = multiprocessing.get_context("fork").Process(target=action)
    process.start()
    process.join(60)
    return process.exitcode


@forking
def test_killed_process_leaves_what_it_has_finished(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def compute() -> None:
        RowStore(tmp_path / "store").get(KEY, NAMES, lambda _: CountedRows(tmp_path / "count", pause=die))

    assert in_a_process(compute) == -signal.SIGKILL
    assert np.array_equal(ask(tmp_path, NAMES[:6]).rows, ROWS[:6])
    rest = RowStore(tmp_path / "store").get(KEY, NAMES, lambda indices: LastRows(indices))
    assert rest.computed == 4
    assert np.array_equal(rest.rows, ROWS)


class LastRows:
    """The rows that a process did not come to."""

    notes: ClassVar = {"rows": 10}
    remarks: ClassVar[dict[int, str]] = {}

    def __init__(self, indices: list[int]) -> None:
        self.chosen = indices

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield ROWS[self.chosen]


@forking
def test_full_disk_is_reported_in_one_line_and_keeps_what_is_there(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    store = RowStore(tmp_path / "store")

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(StoreError, match=r"^'.*' cannot be written \(File too large\)$"):
            store.get(KEY, [f"{i}" for i in range(40)], lambda _: wide)

    wide = CountedRows(tmp_path / "count", np.ones((40, 20), np.float32))
    wide.promised = 40
    assert in_a_process(fill) == 0
    assert journal_of(tmp_path).with_suffix(".rows").stat().st_size == 12 * 80
    assert np.all(np.asarray(ask(tmp_path, [f"{i}" for i in range(12)]).rows) == 1)
    with pytest.raises(pytest.fail.Exception, match="missing"):
        ask(tmp_path, ["12"])


@forking
def test_cache_that_can_only_be_read(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    tmp_path.chmod(0o755)
    (tmp_path / "store").chmod(0o555)
    (folder,) = (tmp_path / "store").iterdir()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555)

    def read() -> None:
        os.chdir(tmp_path)
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        store = RowStore(Path("store"))
        assert np.array_equal(store.get(KEY, NAMES, lambda _: pytest.fail("there")).rows, ROWS)
        with pytest.raises(StoreError, match=r"cannot be written \(Permission denied\)$"):
            store.get(KEY, ["another"], lambda _: pytest.fail("cannot be kept"))
        with pytest.raises(StoreError, match=r"cannot be written \(Permission denied\)$"):
            store.get({}, ["another"], lambda _: pytest.fail("cannot be kept"))

    assert in_a_process(read) == 0
    folder.chmod(0o755)
    (tmp_path / "store").chmod(0o755)


def wait_for(path: Path) -> None:
    for _ in range(6000):
        if path.exists():
            return
        time.sleep(0.005)
    raise TimeoutError(f"{path.name} did not appear")


def compute_slowly(folder: Path) -> None:
    """Hold the lock until the other process says that it waits."""

    def pause() -> None:
        (folder / "computing").touch()
        wait_for(folder / "waiting")

    RowStore(folder / "store").get(KEY, NAMES, lambda _: CountedRows(folder / "count", pause=pause))


def compute_second(folder: Path) -> None:
    """Ask for what the first process computes, and keep what comes."""
    wait_for(folder / "computing")
    handler = logging.Handler()
    handler.emit = lambda record: (folder / "waiting").touch()  # type: ignore[method-assign]
    logging.getLogger("headstart.store.row_store").addHandler(handler)
    result = RowStore(folder / "store").get(KEY, NAMES, lambda _: CountedRows(folder / "count"))
    np.save(folder / "second.npy", result.rows)


@forking
def test_second_process_waits_for_the_first(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes: list[ForkProcess] = [
        context.Process(target=f, args=(tmp_path,)) for f in (compute_slowly, compute_second)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert (tmp_path / "count").read_text() == "computed\n"
    assert np.array_equal(np.load(tmp_path / "second.npy"), ROWS)

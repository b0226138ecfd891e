"""A segment of rows is complete and unaltered or computed again, whatever happens to it or around it."""

import errno
import json
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

ROWS = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
NAMES = [f"row {i}" for i in range(10)]
KEY = {"content": "features", "size": (3, 4), "nested": {"scale": 0.25, "name": None}}


class CountedRows:
    """Rows in chunks of three; every computation leaves a line in a file.

    Args:
        count: The file.
        rows: What it gives; fewer than ten break the promise of its length.
        pause: Called in the middle of every computation.
    """

    def __init__(self, count: Path, rows: NDArray[Any] = ROWS, pause: Callable[[], None] = lambda: None) -> None:
        self.count, self.rows, self.pause = count, rows, pause
        self.promised = 10
        self.notes = {"rows": len(rows)}
        self.remarks = {3: "odd"}

    def __len__(self) -> int:
        return self.promised

    def __iter__(self) -> Iterator[NDArray[Any]]:
        with self.count.open("a") as file:
            file.write("computed\n")
        for first in range(0, len(self.rows), 3):
            if first == 6:
                self.pause()
            yield self.rows[first : first + 3]


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., StoredRows]:
    """Ask for all rows of a table, and check whether they were computed."""

    def ask(computed: bool, key: dict[str, Any] = KEY, **source: Any) -> StoredRows:
        count = tmp_path / "count"
        before = count.read_text() if count.exists() else ""
        result = RowStore(tmp_path / "store").get(key, NAMES, lambda _: CountedRows(count, **source))
        assert result.computed == (10 if computed else 0)
        assert (count.read_text() != before) == computed
        assert np.array_equal(result.rows, source.get("rows", ROWS))
        assert result.notes == {"rows": 10}
        assert result.remarks == {3: "odd"}
        return result

    return ask


def journals_of(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store").glob("*/*.journal"))


def journal_of(tmp_path: Path) -> Path:
    (journal,) = journals_of(tmp_path)
    return journal


def test_computed_once(get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    get(computed=False)
    get(computed=False, key=dict(reversed(KEY.items())))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_rows_of_any_kind(get: Callable[..., StoredRows], dtype: str) -> None:
    rows = np.arange(10 * 2 * 3).reshape(10, 2, 3).astype(dtype)
    assert get(computed=True, rows=rows).rows.dtype == dtype
    get(computed=False, rows=rows)


@pytest.mark.parametrize(
    "change", [{"content": "pixels"}, {"size": (4, 3)}, {"nested": {"scale": 0.25, "name": "none"}}, {"more": 1}]
)
def test_another_key_is_another_table(get: Callable[..., StoredRows], change: dict[str, Any]) -> None:
    get(computed=True)
    get(computed=True, key={**KEY, **change}, rows=ROWS + 1)
    get(computed=False)


def test_table_of_a_key_whose_json_differs_from_it(get: Callable[..., StoredRows]) -> None:
    key = {"numbers": {10: "a", 9: "b"}, "size": (1, 2)}
    get(computed=True, key=key)
    get(computed=False, key=key)
    get(computed=False, key={"numbers": {"9": "b", "10": "a"}, "size": [1, 2]})


def ask(tmp_path: Path, names: list[str]) -> StoredRows:
    """Ask for some rows of the table, which are all there."""
    return RowStore(tmp_path / "store").get(KEY, names, lambda _: pytest.fail("a row is missing"))


def test_only_asked_for_chunks_are_read(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    flip(journal_of(tmp_path).with_suffix(".rows"), -1)  # in the last chunk, which holds the last row alone
    result = ask(tmp_path, NAMES[2:9])
    assert np.array_equal(result.rows, ROWS[2:9])
    assert result.remarks == {1: "odd"}
    get(computed=True)


def flip(path: Path, index: int) -> None:
    content = bytearray(path.read_bytes())
    content[index] ^= 1
    path.write_bytes(content)


def truncate(journal: Path) -> None:
    content = journal.with_suffix(".rows").read_bytes()
    journal.with_suffix(".rows").write_bytes(content[:-1])


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def edit(line: int, change: dict[str, Any]) -> Callable[[Path], object]:
    def write(journal: Path) -> None:
        lines = [json.loads(text) for text in journal.read_text().splitlines()]
        lines[line] |= change
        journal.write_text("".join(json.dumps(said) + "\n" for said in lines))

    return write


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "rows truncated": truncate,
    "rows empty": lambda journal: journal.with_suffix(".rows").write_bytes(b""),
    "rows missing": lambda journal: journal.with_suffix(".rows").unlink(),
    "rows a folder": lambda journal: replace_by_folder(journal.with_suffix(".rows")),
    "row altered": lambda journal: flip(journal.with_suffix(".rows"), 7),
    "journal empty": lambda journal: journal.write_bytes(b""),
    "journal cut": lambda journal: journal.write_text('{"names"'),
    "journal of another shape": lambda journal: journal.write_text("[]\n"),
    "another remark": edit(3, {"remarks": {}}),
    "another form": edit(1, {"form": ["<f4", [5]]}),
    "another type": edit(1, {"form": ["<i4", [4]]}),
    "a type that is none": edit(1, {"form": ["none", [4]]}),
    "no digest": edit(2, {"sha256": None}),
    "other notes": edit(1, {"notes": {"rows": 9}}),
    "other names": edit(0, {"names": NAMES[::-1]}),
    "other counts": edit(2, {"count": 2}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_segment_is_computed_again(
    tmp_path: Path, get: Callable[..., StoredRows], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    get(computed=True)
    DAMAGES[damage](journal_of(tmp_path))
    get(computed=True)
    assert "is damaged" in caplog.text
    get(computed=False)


def test_journal_that_is_a_folder_is_passed_over(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    replace_by_folder(journal_of(tmp_path))
    get(computed=True)
    get(computed=False)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOMEM])
@pytest.mark.parametrize("suffix", [".journal", ".rows"])
def test_segments_that_cannot_be_read_for_a_moment_are_kept(
    tmp_path: Path, get: Callable[..., StoredRows], error: int, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(computed=True)
    reading = Path.open

    def fail(path: Path, *how: Any, **options: Any) -> Any:
        if path.suffix == suffix:
            raise OSError(error, os.strerror(error))
        return reading(path, *how, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", fail)
        with pytest.raises(StoreError, match=rf"store/\w+' cannot be read \({os.strerror(error)}\)$"):
            ask(tmp_path, NAMES)
    get(computed=False)


def test_unchanged_files_are_checked_once(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    rows = journal_of(tmp_path).with_suffix(".rows")
    for path in (rows, journal_of(tmp_path)):
        os.utime(path, ns=(0, 0))
    get(computed=False)
    # An alteration that leaves size, time and file as they are is what is not looked for; any other is noticed.
    content = bytearray(rows.read_bytes())
    content[0] ^= 1
    with rows.open("r+b") as file:
        file.write(content)
    os.utime(rows, ns=(0, 0))
    assert not np.array_equal(ask(tmp_path, NAMES).rows, ROWS)
    os.utime(rows, ns=(0, 1))
    get(computed=True)


def test_chunks_are_checked_when_they_are_asked_for(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    rows = journal_of(tmp_path).with_suffix(".rows")
    flip(rows, -1)
    for path in (rows, journal_of(tmp_path)):
        os.utime(path, ns=(0, 0))
    ask(tmp_path, NAMES[:3])
    ask(tmp_path, NAMES[:6])
    get(computed=True)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "5",
        "null",
        "{}",
        "[]",
        "[STATE, 5]",
        "[STATE, [[0]]]",
        '[STATE, ["a", 1.5, null]]',
        "[5, [0]]",
        "[" * 10_000,
    ],
)
def test_whatever_is_noted_of_what_was_checked(tmp_path: Path, get: Callable[..., StoredRows], content: str) -> None:
    get(computed=True)
    journal = journal_of(tmp_path)
    for path in (journal.with_suffix(".rows"), journal):
        os.utime(path, ns=(0, 0))
    get(computed=False)
    checked = journal.with_suffix(".checked")
    state, checks = json.loads(checked.read_text())
    checked.write_text(content.replace("STATE", json.dumps(state)))
    get(computed=False)
    assert json.loads(checked.read_text()) == [state, checks]


@pytest.mark.parametrize("bit", [0, 1, 2])
def test_rows_are_right_whichever_bit_is_flipped(tmp_path: Path, get: Callable[..., StoredRows], bit: int) -> None:
    get(computed=True)
    rows = journal_of(tmp_path).with_suffix(".rows")
    content = rows.read_bytes()
    for index in range(bit, len(content), 3):
        damaged = bytearray(content)
        damaged[index] ^= 1 << bit
        rows.write_bytes(damaged)
        result = RowStore(tmp_path / "store").get(KEY, NAMES, lambda _: CountedRows(tmp_path / "count"))
        assert result.computed == 10
        assert np.array_equal(result.rows, ROWS)
        rows = journal_of(tmp_path).with_suffix(".rows")


def in_a_process(action: Callable[[], object]) -> int | None:
    """Run something in a forked process, whose limits and rights are its own."""
    process = multiprocessing.get_context("fork").Process(target=action)
    process.start()
    process.join(60)
    return process.exitcode


forking = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="starts processes by forking"
)


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
    assert (ask(tmp_path, [f"{i}" for i in range(12)]).rows == 1).all()
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


@pytest.mark.parametrize("count", [0, 9])
def test_fewer_rows_than_promised(get: Callable[..., StoredRows], count: int) -> None:
    with pytest.raises(ValueError, match=f"promised 10 rows and gave {count}"):
        get(computed=True, rows=ROWS[:count])


def test_writing_to_the_rows_does_not_reach_the_disk(get: Callable[..., StoredRows]) -> None:
    rows = get(computed=True).rows
    assert isinstance(rows, np.memmap)
    rows[:] = 0
    get(computed=False)


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


@pytest.mark.parametrize("removals", [0, 1, 2])
def test_rests_of_a_dropped_segment_are_removed_after_a_kill(
    removals: int, tmp_path: Path, get: Callable[..., StoredRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    get(computed=True)
    (journal,) = (tmp_path / "store").rglob("*.journal")
    journal.write_text("damaged\n")
    unlink, done = Path.unlink, list[None]()

    def end_after_some(path: Path, missing_ok: bool = False) -> None:
        if len(done) == removals:
            raise KeyboardInterrupt
        done.append(unlink(path, missing_ok))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", end_after_some)
        with pytest.raises(KeyboardInterrupt):
            get(computed=True)
    get(computed=True)
    assert len(list((tmp_path / "store").rglob("*.rows"))) == len(list((tmp_path / "store").rglob("*.journal"))) == 1

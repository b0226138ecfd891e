"""Rows of a table are computed once each, whatever happens to them or around them."""

import hashlib
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from numpy.typing import NDArray

from headstart.store.json_digest import digest_of
from headstart.store.row_store import RowStore, StoredRows
from headstart.store.segments import SegmentWriter, StoreError

KEY = {"model": "resnet50", "size": (3, 4)}
NOTES = {"weights": "a1"}


def row_of(name: str, width: int = 5, dtype: str = "float32") -> NDArray[Any]:
    """Return the row of a name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    return np.random.default_rng(seed).integers(0, 200, width).astype(dtype)


class NamedRows:
    """Rows of some names, in chunks of two.

    Args:
        names: The names.
        notes: What it notes, once the first rows are computed.
        pause: Called before every chunk but the first.
        form: Width and type of the rows.
    """

    def __init__(
        self, names: Sequence[str], notes: dict[str, Any], pause: Callable[[], None] = lambda: None, **form: Any
    ) -> None:
        self.names, self.noted, self.pause, self.form = names, notes, pause, form
        self.notes: dict[str, Any] = {}
        self.remarks: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for first in range(0, len(self.names), 2):
            if first:
                self.pause()
            rows = np.stack([row_of(name, **self.form) for name in self.names[first : first + 2]])
            self.notes.update(self.noted)
            # Capitals stand for what there is something to be said about.
            numbered = enumerate(self.names[first : first + 2], first)
            self.remarks.update({index: f"about {name}" for index, name in numbered if name.isupper()})
            yield rows


class Table:
    """One table of a store, whose rows are checked whenever they are asked for.

    Args:
        folder: Folder of the store.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def get(self, names: str, computed: str, key: dict[str, Any] = KEY, **source: Any) -> StoredRows:
        """Ask for rows named by letters, and check which were computed, in the calls that slashes part."""
        self.asked = []
        source = {"notes": NOTES, **source}

        def compute(indices: list[int]) -> NamedRows:
            requested = [names[index] for index in indices]
            self.asked.append("".join(requested))
            return NamedRows(requested, **source)

        result = RowStore(self.folder).get(key, list(names), compute)
        form = {name: source[name] for name in ("width", "dtype") if name in source}
        assert "/".join(self.asked) == computed
        assert result.computed == len(computed.replace("/", ""))
        assert np.array_equal(result.rows, np.stack([row_of(name, **form) for name in names]))
        assert result.rows.dtype == form.get("dtype", "float32")
        assert result.notes == source["notes"]
        assert result.remarks == {index: f"about {name}" for index, name in enumerate(names) if name.isupper()}
        return result

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.journal"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "rows")


def test_nothing_is_computed_twice(table: Table) -> None:
    table.get("abcde", computed="abcde")
    table.get("abcde", computed="")
    table.get("cab", computed="", key=dict(reversed(KEY.items())))
    assert len(table.segments()) == 1


def test_overlapping_requests_compute_what_is_missing(table: Table) -> None:
    table.get("cde", computed="cde")
    table.get("abcdef", computed="abf")
    table.get("fgac", computed="g")
    table.get("gfedcba", computed="")
    assert len(table.segments()) == 3


def test_names_that_repeat(table: Table) -> None:
    table.get("abbab", computed="ab")
    table.get("ccabac", computed="c")
    table.get("cc", computed="")


def test_remarks_follow_their_rows(table: Table) -> None:
    table.get("aBc", computed="aBc")
    table.get("Bca", computed="")
    table.get("ca", computed="")
    table.get("BdBEc", computed="dE")
    table.get("EBE", computed="")


def test_another_key_is_another_table(table: Table) -> None:
    table.get("ab", computed="ab")
    table.get("ab", computed="ab", key={**KEY, "size": (3, 5)}, notes={"weights": "b2"})
    table.get("ab", computed="")


@pytest.mark.parametrize(
    ("names", "mapped"),
    [("abcdef", True), ("cde", True), ("f", True), ("gh", True), ("ba", False), ("ac", False), ("fg", False)],
)
def test_rows_in_the_order_of_a_segment_are_not_copied(table: Table, names: str, mapped: bool) -> None:
    table.get("abcdef", computed="abcdef")
    table.get("gh", computed="gh")
    rows = table.get(names, computed="").rows
    assert isinstance(rows, np.memmap) == mapped
    rows[:] = 0
    table.get(names, computed="")


def test_newly_computed_rows_are_memory_mapped(table: Table) -> None:
    assert isinstance(table.get("abc", computed="abc").rows, np.memmap)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64"])
def test_rows_of_any_kind(table: Table, dtype: str) -> None:
    for names, computed in (("abc", "abc"), ("bad", "d")):
        table.get(names, computed, width=3, dtype=dtype)


def test_random_requests_compute_each_row_once(table: Table) -> None:
    generator = np.random.default_rng(0)
    there: set[str] = set()
    for _ in range(30):
        names = "".join(generator.choice(list("abcdefghijklmnopqrst"), generator.integers(1, 12)))
        missing = [name for name in dict.fromkeys(names) if name not in there]
        table.get(names, computed="".join(missing))
        there.update(missing)


@pytest.mark.parametrize("lost", [".rows", ".journal"])
def test_damaged_segment_is_computed_again(table: Table, lost: str, caplog: pytest.LogCaptureFixture) -> None:
    table.get("ba", computed="ba")
    (damaged,) = table.segments()
    table.get("cde", computed="cde")
    content = bytearray(damaged.with_suffix(lost).read_bytes())
    content[-5] ^= 1
    damaged.with_suffix(lost).write_bytes(content)
    table.get("eb", computed="b")
    assert str(damaged) in caplog.text
    assert "is damaged" in caplog.text
    table.get("abcde", computed="a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
@pytest.mark.parametrize("replaced", [".rows", ".journal", ".checked", ".lock"])
def test_pipe_in_place_of_a_file_is_not_waited_for(table: Table, replaced: str) -> None:
    table.get("ba", computed="ba")
    (segment,) = table.segments()
    segment.with_suffix(replaced).unlink(missing_ok=True)
    os.mkfifo(segment.with_suffix(replaced))
    table.get("ab", computed="ab" if replaced in {".rows", ".journal"} else "")
    table.get("ba", computed="")


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_interrupted_computation_keeps_what_is_finished(table: Table, failure: type[BaseException]) -> None:
    calls: list[None] = []

    def fail() -> None:
        calls.append(None)
        if len(calls) == 2:
            raise failure

    table.get("ab", computed="ab")
    with pytest.raises(failure):
        table.get("ZbcXYdef", computed="", pause=fail)
    assert table.asked == ["ZcXYdef"]
    table.get("YcbXaZ", computed="")
    table.get("abcdefXYZ", computed="def")


def test_interruption_before_any_row_leaves_nothing(table: Table) -> None:
    def fail(indices: list[int]) -> NamedRows:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RowStore(table.folder).get(KEY, ["a"], fail)
    assert [path.name for path in table.folder.glob("*/*")] == ["lock"]


@pytest.mark.parametrize("change", [{"notes": {"weights": "b2"}}, {"width": 6}, {"dtype": "float64"}])
def test_rows_of_another_origin_are_not_mixed_with_older_ones(table: Table, change: dict[str, Any]) -> None:
    table.get("abc", computed="abc")
    table.get("de", computed="de")
    table.get("gcdaf", computed="gf/cda", **change)
    table.get("gcdaf", computed="", **change)
    table.get("abcde", computed="be", **change)


def test_older_rows_are_good_as_long_as_none_is_missing(table: Table) -> None:
    table.get("abc", computed="abc")
    RowStore(table.folder).get(KEY, ["c", "a"], lambda indices: pytest.fail("nothing is missing"))


def test_source_that_contradicts_itself(table: Table) -> None:
    def compute(indices: list[int]) -> NamedRows:
        calls.append(indices)
        return NamedRows([names[index] for index in indices], {"call": len(calls)})

    calls: list[list[int]] = []
    names = list("ab")
    store = RowStore(table.folder)
    store.get(KEY, names, compute)
    names = list("abc")
    with pytest.raises(ValueError, match="the source contradicts itself"):
        store.get(KEY, names, compute)
    assert calls == [[0, 1], [2], [0, 1]]


def test_cache_that_is_removed_while_it_is_written(table: Table) -> None:
    def compute(indices: list[int]) -> NamedRows:
        shutil.rmtree(table.folder)
        return NamedRows([*"ab"], NOTES)

    with pytest.raises(StoreError, match="it was removed while it was written; try again"):
        RowStore(table.folder).get(KEY, [*"ab"], compute)


def test_cache_that_is_removed_just_after_it_was_written(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_and_remove(writer: SegmentWriter, source: NamedRows) -> None:
        write(writer, source)
        shutil.rmtree(table.folder)

    write = SegmentWriter.write
    monkeypatch.setattr(SegmentWriter, "write", write_and_remove)
    with pytest.raises(StoreError, match=r"rows vanished just after they were written; does something remove"):
        RowStore(table.folder).get(KEY, [*"ab"], lambda indices: NamedRows(["ab"[i] for i in indices], NOTES))


@pytest.mark.parametrize("count", [1, 3])
def test_source_of_other_length_than_asked_for(table: Table, count: int) -> None:
    with pytest.raises(ValueError, match=f"asked for 2 rows and promises {count}"):
        RowStore(table.folder).get(KEY, ["a", "b"], lambda indices: NamedRows("abc"[:count], NOTES))
    assert table.segments() == []


def test_no_names(table: Table) -> None:
    with pytest.raises(ValueError, match="names: none given"):
        table.get("", computed="")


@pytest.mark.parametrize("in_the_way", ["rows", "rows/table", "rows/table/lock"])
def test_files_of_another_kind_are_named(table: Table, in_the_way: str) -> None:
    path = Path(in_the_way.replace("rows", str(table.folder), 1).replace("/table", f"/{digest_of(KEY)}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if path.name == "lock" else path.touch()
    with pytest.raises(StoreError, match=r"^'.*rows/\w+' cannot be (read|written) \(") as caught:
        table.get("a", computed="a")
    assert "\n" not in str(caught.value)


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


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="starts processes by forking")
def test_processes_share_the_work(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=ask_slowly, args=(tmp_path, n)) for n in range(3)]
    check_side_by_side(tmp_path, processes)
    assert [process.exitcode for process in processes] == [0, 0, 0]

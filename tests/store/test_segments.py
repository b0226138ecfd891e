"""A segment of rows is complete and unaltered or computed again, whatever happens to it or around it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from store.row_store import Rows, RowStore, StoreError

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
        self.notes: dict[str, Any] = {}
        self.remarks: dict[int, str] = {}

    def __len__(self) -> int:
        return 10

    def __iter__(self) -> Iterator[NDArray[Any]]:
        with self.count.open("a") as file:
            file.write("computed\n")
        for first in range(0, len(self.rows), 3):
            if first == 6:
                self.pause()
            yield self.rows[first : first + 3]
        self.notes["rows"] = len(self.rows)
        self.remarks[3] = "odd"


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Rows]:
    """Ask for all rows of a table, and check whether they were computed."""

    def ask(computed: bool, key: dict[str, Any] = KEY, **source: Any) -> Rows:
        count = tmp_path / "count"
        before = count.read_text() if count.exists() else ""
        found = RowStore(tmp_path / "store").get(key, NAMES, lambda _: CountedRows(count, **source))
        assert found.computed == (10 if computed else 0)
        assert (count.read_text() != before) == computed
        assert np.array_equal(found.rows, source.get("rows", ROWS))
        assert found.notes == {"rows": 10}
        assert found.remarks == {3: "odd"}
        return found

    return ask


def folders_of(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "store").glob("*/*") if path.is_dir()]


def segment_folder(tmp_path: Path) -> Path:
    (folder,) = folders_of(tmp_path)
    return folder


def test_computed_once(get: Callable[..., Rows]) -> None:
    get(computed=True)
    get(computed=False)
    get(computed=False, key=dict(reversed(KEY.items())))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_rows_of_any_kind(get: Callable[..., Rows], dtype: str) -> None:
    rows = np.arange(10 * 2 * 3).reshape(10, 2, 3).astype(dtype)
    assert get(computed=True, rows=rows).rows.dtype == dtype
    get(computed=False, rows=rows)


@pytest.mark.parametrize(
    "change", [{"content": "pixels"}, {"size": (4, 3)}, {"nested": {"scale": 0.25, "name": "none"}}, {"more": 1}]
)
def test_another_key_is_another_table(get: Callable[..., Rows], change: dict[str, Any]) -> None:
    get(computed=True)
    get(computed=True, key={**KEY, **change}, rows=ROWS + 1)
    get(computed=False)


def test_table_of_a_key_whose_json_differs_from_it(get: Callable[..., Rows]) -> None:
    key = {"numbers": {10: "a", 9: "b"}, "size": (1, 2)}
    get(computed=True, key=key)
    get(computed=False, key=key)
    get(computed=False, key={"numbers": {"9": "b", "10": "a"}, "size": [1, 2]})


def test_only_asked_for_segments_are_read(tmp_path: Path, get: Callable[..., Rows]) -> None:
    get(computed=True)
    whole = segment_folder(tmp_path)
    store, count = RowStore(tmp_path / "store"), tmp_path / "count"
    others = [f"other {i}" for i in range(10)]
    store.get(KEY, others, lambda _: CountedRows(count))
    truncate(whole)
    assert store.get(KEY, others, lambda _: CountedRows(count)).computed == 0
    assert whole.exists()
    get(computed=True)


def test_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/store/\w+' cannot be created"):
        RowStore(tmp_path / "file" / "store").get(KEY, NAMES, lambda _: CountedRows(tmp_path / "count"))


def truncate(folder: Path) -> None:
    content = (folder / "rows.npy").read_bytes()
    (folder / "rows.npy").write_bytes(content[:-1])


def edit_manifest(folder: Path, change: dict[str, Any]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "rows truncated": truncate,
    "rows empty": lambda folder: (folder / "rows.npy").write_bytes(b""),
    "rows missing": lambda folder: (folder / "rows.npy").unlink(),
    "manifest missing": lambda folder: (folder / "manifest.json").unlink(),
    "manifest with another remark": lambda folder: edit_manifest(folder, {"remarks": {}}),
    "manifest of another form": lambda folder: edit_manifest(folder, {"form": ["<f4", [5]]}),
    "manifest cut": lambda folder: (folder / "manifest.json").write_text('{"key"'),
    "manifest of another shape": lambda folder: (folder / "manifest.json").write_text("[]"),
    "manifest without digest": lambda folder: (folder / "manifest.json").write_text('{"names": [], "notes": {}}'),
    "manifest with other notes": lambda folder: edit_manifest(folder, {"notes": {"rows": 9}}),
    "manifest of other names": lambda folder: edit_manifest(folder, {"names": NAMES[::-1]}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_segment_is_computed_again(
    tmp_path: Path, get: Callable[..., Rows], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    get(computed=True)
    DAMAGES[damage](segment_folder(tmp_path))
    get(computed=True)
    assert "is damaged" in caplog.text
    get(computed=False)


@pytest.mark.parametrize("bit", [0, 1, 2])
def test_rows_are_right_whichever_bit_is_flipped(tmp_path: Path, get: Callable[..., Rows], bit: int) -> None:
    get(computed=True)
    rows = segment_folder(tmp_path) / "rows.npy"
    content = rows.read_bytes()
    for place in range(bit, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        rows.write_bytes(damaged)
        found = RowStore(tmp_path / "store").get(KEY, NAMES, lambda _: CountedRows(tmp_path / "count"))
        assert found.rows.dtype == ROWS.dtype
        assert np.array_equal(found.rows, ROWS)
        # In the header before the rows there are bits without a meaning.
        assert found.computed or place < len(content) - ROWS.nbytes


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_failure_in_the_middle_leaves_nothing(
    tmp_path: Path, get: Callable[..., Rows], failure: type[BaseException]
) -> None:
    def fail() -> None:
        raise failure

    with pytest.raises(failure):
        get(computed=True, pause=fail)
    assert not folders_of(tmp_path)
    get(computed=True)


def test_what_a_killed_process_left_is_no_segment(tmp_path: Path, get: Callable[..., Rows]) -> None:
    get(computed=True)
    folder = segment_folder(tmp_path)
    folder.rename(folder.with_suffix(".partial"))
    get(computed=True)
    assert segment_folder(tmp_path) == folder


@pytest.mark.parametrize("count", [0, 9])
def test_fewer_rows_than_promised(get: Callable[..., Rows], count: int) -> None:
    with pytest.raises(ValueError, match=f"promised 10 rows and gave {count}"):
        get(computed=True, rows=ROWS[:count])


def test_writing_to_the_rows_does_not_reach_the_disk(get: Callable[..., Rows]) -> None:
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
    logging.getLogger("store.segments").addHandler(handler)
    found = RowStore(folder / "store").get(KEY, NAMES, lambda _: CountedRows(folder / "count"))
    np.save(folder / "second.npy", found.rows)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="starts processes by forking")
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

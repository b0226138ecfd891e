"""An entry of the store is computed once, whatever happens to it or around it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from store.feature_store import Entry, FeatureStore, StoreError

ROWS = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
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


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Entry]:
    """Open the entry of a key in one store, after checking whether it was computed."""

    def open_entry(computed: bool, key: dict[str, Any] = KEY, **source: Any) -> Entry:
        count = tmp_path / "count"
        before = count.read_text() if count.exists() else ""
        entry = FeatureStore(tmp_path / "store").get(key, CountedRows(count, **source))
        assert entry.computed == computed
        assert (count.read_text() != before) == computed
        assert np.array_equal(entry.rows, source.get("rows", ROWS))
        assert entry.notes == {"rows": 10}
        return entry

    return open_entry


def folders_of(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "store").iterdir() if path.is_dir()]


def entry_folder(tmp_path: Path) -> Path:
    (folder,) = folders_of(tmp_path)
    return folder


def test_computed_once(get: Callable[..., Entry]) -> None:
    get(computed=True)
    get(computed=False)
    get(computed=False, key=dict(reversed(KEY.items())))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_rows_of_any_kind(get: Callable[..., Entry], dtype: str) -> None:
    rows = np.arange(10 * 2 * 3).reshape(10, 2, 3).astype(dtype)
    assert get(computed=True, rows=rows).rows.dtype == dtype
    get(computed=False, rows=rows)


@pytest.mark.parametrize(
    "change", [{"content": "pixels"}, {"size": (4, 3)}, {"nested": {"scale": 0.25, "name": "none"}}, {"more": 1}]
)
def test_another_key_is_another_entry(get: Callable[..., Entry], change: dict[str, Any]) -> None:
    get(computed=True)
    get(computed=True, key={**KEY, **change}, rows=ROWS + 1)
    get(computed=False)


def test_entry_of_a_key_whose_json_differs_from_it(get: Callable[..., Entry]) -> None:
    key = {"numbers": {10: "a", 9: "b"}, "size": (1, 2)}
    assert get(computed=True, key=key).key == {"numbers": {"9": "b", "10": "a"}, "size": [1, 2]}
    get(computed=False, key=key)


def test_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=re.escape(f"{str(tmp_path / 'file' / 'store')!r} cannot be created")):
        FeatureStore(tmp_path / "file" / "store")


def test_listing_drops_what_is_not_complete(tmp_path: Path, get: Callable[..., Entry]) -> None:
    for name in ("whole", "cut", "interrupted"):
        get(computed=True, key={"name": name})
    store = FeatureStore(tmp_path / "store")
    folders = {json.loads((path / "manifest.json").read_text())["key"]["name"]: path for path in folders_of(tmp_path)}
    truncate(folders["cut"])
    folders["interrupted"].rename(folders["interrupted"].with_suffix(".partial"))
    (entry,) = store.entries()
    assert (entry.key, entry.computed) == ({"name": "whole"}, False)
    assert np.array_equal(entry.rows, ROWS)
    assert folders_of(tmp_path) == [folders["whole"]]
    store.remove(entry.key)
    assert not store.entries()
    assert not folders_of(tmp_path)


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
    "manifest cut": lambda folder: (folder / "manifest.json").write_text('{"key"'),
    "manifest of another shape": lambda folder: (folder / "manifest.json").write_text("[]"),
    "manifest without digest": lambda folder: (folder / "manifest.json").write_text('{"key": {}, "notes": {}}'),
    "manifest with other notes": lambda folder: edit_manifest(folder, {"notes": {"rows": 9}}),
    "manifest of another key": lambda folder: edit_manifest(folder, {"key": {**KEY, "size": [3, 5]}}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entry_is_computed_again(
    tmp_path: Path, get: Callable[..., Entry], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    get(computed=True)
    DAMAGES[damage](entry_folder(tmp_path))
    get(computed=True)
    assert "is damaged" in caplog.text
    get(computed=False)


@pytest.mark.parametrize("bit", [0, 1, 2])
def test_rows_are_right_whichever_bit_is_flipped(tmp_path: Path, get: Callable[..., Entry], bit: int) -> None:
    get(computed=True)
    rows = entry_folder(tmp_path) / "rows.npy"
    content = rows.read_bytes()
    for place in range(bit, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        rows.write_bytes(damaged)
        entry = FeatureStore(tmp_path / "store").get(KEY, CountedRows(tmp_path / "count"))
        assert entry.rows.dtype == ROWS.dtype
        assert np.array_equal(entry.rows, ROWS)
        # In the header before the rows there are bits without a meaning.
        assert entry.computed or place < len(content) - ROWS.nbytes


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_failure_in_the_middle_leaves_nothing(
    tmp_path: Path, get: Callable[..., Entry], failure: type[BaseException]
) -> None:
    def fail() -> None:
        raise failure

    with pytest.raises(failure):
        get(computed=True, pause=fail)
    assert [path.suffix for path in (tmp_path / "store").iterdir()] == [".lock"]
    get(computed=True)


def test_what_a_killed_process_left_is_no_entry(tmp_path: Path, get: Callable[..., Entry]) -> None:
    get(computed=True)
    folder = entry_folder(tmp_path)
    folder.rename(folder.with_suffix(".partial"))
    get(computed=True)
    assert entry_folder(tmp_path) == folder


@pytest.mark.parametrize("count", [0, 9])
def test_fewer_rows_than_promised(get: Callable[..., Entry], count: int) -> None:
    with pytest.raises(ValueError, match=f"promised 10 rows and gave {count}"):
        get(computed=True, rows=ROWS[:count])


def test_writing_to_the_rows_does_not_reach_the_disk(get: Callable[..., Entry]) -> None:
    rows = get(computed=True).rows
    assert isinstance(rows, np.memmap)
    rows[:] = 0
    get(computed=False)


def wait_for(path: Path) -> None:
    for _ in range(6000):
        if path.exists():
            return
        time.sleep(0.005)
    msg = f"{path.name} did not appear"
    raise TimeoutError(msg)


def compute_slowly(folder: Path) -> None:
    """Hold the lock until the other process says that it waits."""

    def pause() -> None:
        (folder / "computing").touch()
        wait_for(folder / "waiting")

    FeatureStore(folder / "store").get(KEY, CountedRows(folder / "count", pause=pause))


def compute_second(folder: Path) -> None:
    """Ask for what the first process computes, and keep what comes."""
    wait_for(folder / "computing")
    handler = logging.Handler()
    handler.emit = lambda record: (folder / "waiting").touch()  # type: ignore[method-assign]
    logging.getLogger("store.feature_store").addHandler(handler)
    entry = FeatureStore(folder / "store").get(KEY, CountedRows(folder / "count"))
    np.save(folder / "second.npy", entry.rows)


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

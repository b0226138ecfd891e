"""Rows of a table are computed once each, whatever happens to them."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.store.json_digest import digest_of
from headstart.store.row_store import RowStore
from headstart.store.segment_writer import SegmentWriter
from headstart.store.segments import StoreError
from headstart.tests.material.named_rows import KEY, NOTES, NamedRows, Table


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
    assert isinstance(rows, np.ndarray)
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

"""A damaged segment of rows is computed again, and an unaltered one is not."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.store.row_store import RowStore, StoredRows
from headstart.store.segments import StoreError
from headstart.tests.material.counted_rows import KEY, NAMES, ROWS, CountedRows, ask, flip, journal_of


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

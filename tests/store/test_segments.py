"""A segment of rows is computed once, and only the chunks that are asked for are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.store.row_store import StoredRows
from headstart.tests.material.counted_rows import KEY, NAMES, ROWS, ask, flip, journal_of


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


def test_only_asked_for_chunks_are_read(tmp_path: Path, get: Callable[..., StoredRows]) -> None:
    get(computed=True)
    flip(journal_of(tmp_path).with_suffix(".rows"), -1)  # in the last chunk, which holds the last row alone
    result = ask(tmp_path, NAMES[2:9])
    assert np.array_equal(result.rows, ROWS[2:9])
    assert result.remarks == {1: "odd"}
    get(computed=True)


@pytest.mark.parametrize("count", [0, 9])
def test_fewer_rows_than_promised(get: Callable[..., StoredRows], count: int) -> None:
    with pytest.raises(ValueError, match=f"promised 10 rows and gave {count}"):
        get(computed=True, rows=ROWS[:count])


def test_writing_to_the_rows_does_not_reach_the_disk(get: Callable[..., StoredRows]) -> None:
    rows = get(computed=True).rows
    assert isinstance(rows, np.memmap)
    rows[:] = 0
    get(computed=False)

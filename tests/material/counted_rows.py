"""Ten rows in a store, whose computations are counted, and processes that ask for them."""

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.store.row_store import RowStore, StoredRows

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


def journals_of(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store").glob("*/*.journal"))


def journal_of(tmp_path: Path) -> Path:
    (journal,) = journals_of(tmp_path)
    return journal


def ask(tmp_path: Path, names: list[str]) -> StoredRows:
    """Ask for some rows of the table, which are all there."""
    return RowStore(tmp_path / "store").get(KEY, names, lambda _: pytest.fail("a row is missing"))


def flip(path: Path, index: int) -> None:
    content = bytearray(path.read_bytes())
    content[index] ^= 1
    path.write_bytes(content)


forking = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="starts processes by forking"
)

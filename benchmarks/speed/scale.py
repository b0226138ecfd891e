"""The cost of scale: memory of many orderings, rows of another validation subset, several readers of a large entry."""

import multiprocessing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import peak_mib, temporary_folder, timed
from headstart.datamodules.orderings import sample_ordering, sample_validation
from headstart.store.row_store import RowStore, StoredRows

PHOTOS, ORDERINGS, LIMIT = 100_000, 1_000, 500
VALIDATION, SUBSET, FEATURES = 10_000, 5_000, 1_280
COLUMNS, CHUNK, READERS = 2_048, 1_000, 3


class Noise:
    """Rows of noise, one for each index."""

    notes: ClassVar[dict[str, Any]] = {}
    remarks: ClassVar[dict[int, str]] = {}

    def __init__(self, indices: Sequence[int], columns: int) -> None:
        self.indices, self.columns = indices, columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indices)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the rows in chunks."""
        chunk = np.random.default_rng(0).standard_normal((CHUNK, self.columns), dtype=np.float32)
        for first in range(0, len(self), CHUNK):
            yield chunk[: len(self) - first]


def _get(store: RowStore, names: Sequence[str], columns: int) -> StoredRows:
    return store.get({"columns": columns}, list(names), lambda indices: Noise(indices, columns))


def main(rows: int = 100_000) -> None:
    """Print the three costs.

    Args:
        rows: Rows of the large entry, of 8 KB each.
    """
    peak, _ = peak_mib(lambda: [sample_ordering(PHOTOS, number, 0)[:LIMIT].copy() for number in range(ORDERINGS)])
    print(f"{ORDERINGS} orderings of {LIMIT} of {PHOTOS} photos: {peak:.1f} MiB")
    with temporary_folder() as folder:
        _subsets(RowStore(folder))
        _readers(RowStore(folder), rows)


def _subsets(store: RowStore) -> None:
    names = np.array([f"{index:064x}" for index in range(VALIDATION)])
    labels = np.arange(VALIDATION) % 10

    def computed(seed: int) -> int:
        return _get(store, names[sample_validation(labels, SUBSET, seed)].tolist(), FEATURES).computed

    print(f"rows of {SUBSET} of {VALIDATION} validation photos computed: {computed(0)}, by another seed {computed(1)}")
    _get(store, names.tolist(), FEATURES)
    seconds, count = timed(lambda: computed(2))
    print(f"by a third after all photos: {count}, in {seconds:.2f} s")


def _read(folder: Path, rows: int, start: Any = None) -> None:  # noqa: ANN401 - a barrier has no public type
    names = [f"{index:064x}" for index in range(rows)]
    if start is None:
        _get(RowStore(folder), names, COLUMNS)
        return
    start.wait()
    print(f" {timed(lambda: _get(RowStore(folder), names, COLUMNS))[0]:.2f} s", end="", flush=True)


def _readers(store: RowStore, rows: int) -> None:
    _read(store.folder, rows)
    for state, count in (("not checked", 1), ("not checked", READERS), ("checked", 1), ("checked", READERS)):
        for mark in store.folder.glob("*/*.checked") if state == "not checked" else ():
            mark.unlink()

        print(f"{count} readers of {rows * COLUMNS * 4 / 1e6:.0f} MB, digest {state}:", end="", flush=True)
        start = multiprocessing.Barrier(count)
        readers = [multiprocessing.Process(target=_read, args=(store.folder, rows, start)) for _ in range(count)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        print()

"""What scale costs: memory of many orderings, rows of another validation subset, several readers of a large entry."""

from __future__ import annotations

import multiprocessing
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import temporary_folder, timed
from headstart.datamodules.orderings import sample_ordering, sample_validation
from headstart.store.row_store import RowStore, StoredRows

PHOTOS, ORDERINGS, LIMIT = 100_000, 1_000, 500
VALIDATION, SUBSET, FEATURES = 10_000, 5_000, 1_280
ROWS, COLUMNS, CHUNK = 100_000, 2_048, 1_000
READERS = 3


class Noise:
    """Rows of noise, one for each index."""

    notes: ClassVar[dict[str, Any]] = {}
    remarks: ClassVar[dict[int, str]] = {}

    def __init__(self, places: Sequence[int], columns: int) -> None:
        self.places, self.columns = places, columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.places)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the rows in chunks."""
        chunk = np.random.default_rng(0).standard_normal((CHUNK, self.columns), dtype=np.float32)
        for first in range(0, len(self), CHUNK):
            yield chunk[: len(self) - first]


def main() -> None:
    """Print the three costs, each beside an alternative."""
    _orderings()
    with temporary_folder() as folder:
        _subsets(RowStore(folder))
        _readers(RowStore(folder))


def _orderings() -> None:
    tracemalloc.start()
    orders = np.empty((ORDERINGS, LIMIT), dtype=np.int64)
    for order, number in zip(orders, range(ORDERINGS), strict=True):
        order[:] = sample_ordering(PHOTOS, number, 0)[:LIMIT]
    kept, peak = (size / 1e6 for size in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    whole = ORDERINGS * sample_ordering(PHOTOS, 0, 0).nbytes / 1e6
    print(
        f"{ORDERINGS} orderings of {LIMIT} of {PHOTOS} photos: {kept:.1f} MB, {peak:.1f} MB while they are drawn; "
        f"whole permutations {whole:.0f} MB"
    )


def _subsets(store: RowStore) -> None:
    labels = np.arange(VALIDATION) % 10
    names = np.array([f"{place:064x}" for place in range(VALIDATION)])

    def find(chosen: NDArray[np.str_]) -> StoredRows:
        return store.get({"validation": True}, chosen.tolist(), lambda places: Noise(places, FEATURES))

    def part(seed: int) -> NDArray[np.str_]:
        return names[sample_validation(labels, SUBSET, seed)]

    first, second = (find(part(seed)).computed for seed in range(2))
    print(f"rows of {SUBSET} of {VALIDATION} validation photos computed: {first}, by another seed {second}")
    find(names)
    seconds, found = timed(lambda: find(part(2)))
    print(f"by a third after all photos {found.computed} (found in {seconds:.2f} s)")


def _read(folder: Path, start: Any) -> None:  # noqa: ANN401 - a barrier has no public type
    start.wait()
    seconds, found = timed(lambda: _large(RowStore(folder)))
    assert found.computed == 0
    print(f" {seconds:.2f} s", end="", flush=True)


def _large(store: RowStore) -> StoredRows:
    names = [f"{place:064x}" for place in range(ROWS)]
    return store.get({"large": True}, names, lambda places: Noise(places, COLUMNS))


def _readers(store: RowStore) -> None:
    _large(store)
    for checked in ("first", "then"):
        for count in (1, READERS):
            for noted in store.folder.glob("*/*.checked") if checked == "first" else ():
                noted.unlink()
            print(f"{count} readers of {ROWS * COLUMNS * 4 / 1e6:.0f} MB, {checked}:", end="", flush=True)
            start = multiprocessing.Barrier(count)
            readers = [multiprocessing.Process(target=_read, args=(store.folder, start)) for _ in range(count)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            print()


if __name__ == "__main__":
    main()

"""Rows on disk that are found by name, and computed only if they are missing."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.output.files import write_together
from headstart.store.gathered_rows import GatheredRows
from headstart.store.json_digest import digest_of
from headstart.store.name_index import NameIndex, Names, first_indices, pack, take
from headstart.store.row_table import Filler, RowTable
from headstart.store.segments import RowSource, drop, explain_os_errors

log = logging.getLogger(__name__)

# Rounds in which no row was missing to anybody, and none found; another process may end in the midst of one.
IDLE_ROUNDS = 3
# Bytes of scattered rows up to which they are copied into memory.
COPIED = 2**30

Compute = Callable[[list[int]], RowSource]
Cut = Callable[[NDArray[np.int64]], Sequence[NDArray[np.int64]]]


@dataclass(frozen=True)
class StoredRows:
    """Rows of one table.

    Attributes:
        rows: `[names, ...]` in the order of the names. Memory-mapped if they follow each other in one segment; changes
            do not reach the disk. Others are copied, or if they are larger than `COPIED` read when they are indexed.
        notes: Notes of the source on all rows.
        remarks: Remarks of the source on single rows, by their indices, ascending.
        computed: Number of rows that this call computed.
    """

    rows: NDArray[Any] | GatheredRows
    notes: dict[str, Any]
    remarks: dict[int, str]
    computed: int


class RowStore:
    """Tables on disk whose rows are computed once each, however requests for them overlap.

    A table is a folder, named by the digest of its key, of segments, each with the rows that one process computed. Rows
    can be read as soon as they are written, also if the computation is cut off. Their digests are checked before they
    are used, so altered rows are computed again. Rows are computed piece by piece, and processes share the pieces. A
    process waits for another one only while that computes rows that it needs, and nothing else is left to do.

    Args:
        folder: Folder of the store, created when rows are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(
        self,
        key: Mapping[str, Any],
        names: Sequence[str],
        source: Compute,
        cut: Cut = lambda missing: [missing],
        begin: Callable[[int], object] = lambda missing: None,
        copied: int | None = None,
    ) -> StoredRows:
        """Return rows of a table, after computing those that are missing or damaged.

        Args:
            key: Everything that all rows of the table depend on; JSON values.
            names: What one row depends on besides, such as the digest of a file; a name may occur more than once.
            source: Returns the source of rows, from their indices in `names`; not called if no row is missing.
            cut: Cuts the indices of missing rows into pieces, which are computed one after the other; by default one.
            begin: Called with the number of missing rows before they are computed.
            copied: Bytes of scattered rows up to which they are copied into memory; `COPIED` by default.

        Returns:
            The rows.

        Raises:
            StoreError: The folder cannot be read, or rows are missing and it cannot be written.
            ValueError: There are no names, or the source contradicts itself.
        """
        if not names:
            raise ValueError("names: none given; without a row, the table's shape is not known")
        table, requested = self.table(key), pack(names)
        computed, waited, idle = 0, False, 0

        with self.filler(key) as filler:
            while True:
                found = _Found(table, requested)
                missing = found.missing
                if not len(missing):
                    return found.gather(computed, COPIED if copied is None else copied)
                if computed and computed + len(missing) > len(np.unique(requested)):
                    filler.require_kept()
                    raise ValueError("the source contradicts itself: its rows came with other notes or another shape")

                begin(len(missing))
                before = computed
                for piece in cut(missing):
                    computed += filler.fill(take(names, piece), partial(_compute, source, piece))
                if computed == before:
                    if not waited:
                        log.warning("another process is computing the same rows in %s; waiting for it", table.folder)
                    waited = True
                    idle = 0 if filler.wait([names[index] for index in missing]) else idle + 1
                    if idle == IDLE_ROUNDS:
                        raise ValueError("the rows that others have computed have other notes or another shape")

    def table(self, key: Mapping[str, Any]) -> RowTable:
        """Return the table of a key."""
        return RowTable(self.folder / digest_of(key))

    def filler(self, key: Mapping[str, Any], run: str = "") -> Filler:
        """Return what computes missing rows of the table of a key; arguments as for `Filler`."""
        return Filler(self.table(key), key, run)

    def missing(self, key: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.int64]:
        """Return the first index of each name without an intact row, ascending; arguments and errors as for `get`."""
        return _Found(self.table(key), pack(names)).missing

    def look_up(self, key: Mapping[str, Any], names: set[str]) -> tuple[set[str], set[str]]:
        """Find stored rows, and remove damaged ones.

        Args:
            key: As for `get`.
            names: Names of rows.

        Returns:
            Names of the rows that are stored, and of those that were damaged.
        """
        table, listed = self.table(key), list(names)
        packed = pack(listed)
        with explain_os_errors(table.folder, "read"):
            before = NameIndex([segment.names for segment in table.segments()]).find(packed) >= 0
        intact = _Found(table, packed).at >= 0
        return (
            {name for name, there in zip(listed, intact, strict=True) if there},
            {name for name, lost in zip(listed, before & ~intact, strict=True) if lost},
        )

    def forget(self, key: Mapping[str, Any], names: set[str]) -> int:
        """Remove segments that hold rows which proved to be wrong, unless one is being written.

        Args:
            key: As for `get`.
            names: Names of the wrong rows.

        Returns:
            Number of rows that were removed.
        """
        if not names:
            return 0
        table, wrong, removed = self.table(key), pack(sorted(names)), 0
        with explain_os_errors(table.folder, "written"), FileLock(table.folder / "lock"):
            for segment in table.segments(of_any_origin=True):
                # A process that holds the lock may be about to write further rows.
                if np.isin(wrong, segment.names).any() and segment.wait(0):
                    drop(segment.path)
                    removed += len(segment.names)
        return removed


def _compute(source: Compute, piece: NDArray[np.int64], free: NDArray[np.int64]) -> RowSource:
    """Return the source of the free rows of a piece."""
    return source(piece[free].tolist())


class _Found:
    """Where requested rows are.

    Args:
        table: The table, whose requested rows are checked; damaged segments are removed.
        requested: Names of the rows.

    Attributes:
        at: Index of each row among all rows of the segments, `[requested]`; -1 where there is none.
    """

    def __init__(self, table: RowTable, requested: Names) -> None:
        self.requested = requested
        with explain_os_errors(table.folder, "read"):
            while True:
                self.segments = table.segments()
                self.at = NameIndex([segment.names for segment in self.segments]).find(requested)
                self.starts = np.cumsum([0, *(len(segment.names) for segment in self.segments)])
                needed = np.zeros(self.starts[-1], bool)
                needed[self.at[self.at >= 0]] = True
                parts = [needed[first:end] for first, end in pairwise(self.starts)]
                if table.check(self.segments, parts):
                    break

    @property
    def missing(self) -> NDArray[np.int64]:
        """The first index of each name without a row, ascending."""
        return first_indices(self.requested, self.at < 0)

    def gather(self, computed: int, copied: int) -> StoredRows:
        """Return the rows, of which none is missing; those that are not in their order are copied up to some bytes."""
        owners = np.searchsorted(self.starts, self.at, side="right") - 1
        rows = self.at - self.starts[owners]
        first = self.segments[owners[0]]
        remarks = self._remarks()
        if (owners == owners[0]).all() and (np.diff(rows) == 1).all():
            return StoredRows(first.rows[rows[0] : rows[0] + len(rows)], first.origin["notes"], remarks, computed)

        used, owners = np.unique(owners, return_inverse=True)
        gathered = GatheredRows([self.segments[owner].rows for owner in used], owners, rows)
        return StoredRows(
            gathered if gathered.nbytes > copied else gathered[:], first.origin["notes"], remarks, computed
        )

    def _remarks(self) -> dict[int, str]:
        """Return the remarks on requested rows, by their indices."""
        remarks = {name: remark for segment in self.segments for name, remark in segment.remarks.items()}
        if not remarks:
            return {}
        texts = list(remarks.values())
        which = NameIndex([pack(list(remarks))]).find(self.requested)
        return {int(index): texts[which[index]] for index in np.flatnonzero(which >= 0)}


def first_measured(folder: Path, key: Mapping[str, Any], number: int) -> int:
    """Return the number that was measured first; store this one if it is the first.

    Args:
        folder: Folder of such numbers, created where it is missing.
        key: Everything that identifies the number; JSON values.
        number: The number as it was measured now.

    Returns:
        The stored number; this one if none can be read.

    Raises:
        StoreError: The number cannot be written.
    """
    path = folder / f"{digest_of(key)}.json"
    try:
        # Reading from a pipe would wait forever.
        return int(json.loads(path.read_text() if path.is_file() else "")["number"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        text = json.dumps({"number": number, "key": dict(key)}) + "\n"
        with explain_os_errors(folder, "written"):
            write_together(folder, {path.name: partial(Path.write_text, data=text)})
        return number

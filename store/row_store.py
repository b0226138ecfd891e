"""Rows on disk that are found by name, and computed only if they are missing."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.output.files import write_together
from headstart.store.gathered_rows import GatheredRows
from headstart.store.json_digest import digest_of
from headstart.store.segments import (
    DamagedError,
    RowSource,
    Segment,
    SegmentWriter,
    StoreError,
    drop,
    explain_os_errors,
    open_segments,
)

log = logging.getLogger(__name__)

# Bytes of scattered rows up to which they are copied into memory.
COPIED = 2**30

Compute = Callable[[list[int]], RowSource]


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

    A table is a folder, named by the digest of its key, of segments, each with the rows that one call computed. Rows
    can be read as soon as they are written, also if the computation is cut off. Their digests are checked before they
    are used, so altered rows are computed again. A process waits for another one only while that computes rows that it
    needs.

    Args:
        folder: Folder of the store, created when rows are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: Mapping[str, Any], names: Sequence[str], source: Compute) -> StoredRows:
        """Return rows of a table, after computing those that are missing or damaged.

        Args:
            key: Everything that all rows of the table depend on; JSON values.
            names: What one row depends on besides, such as the digest of a file; a name may occur more than once.
            source: Returns the source of rows, from their indices in `names`; not called if no row is missing.

        Returns:
            The rows.

        Raises:
            StoreError: The folder cannot be read, or rows are missing and it cannot be written.
            ValueError: There are no names, or the source contradicts itself.
        """
        if not names:
            raise ValueError("names: none given; without a row, the table's shape is not known")
        table = self.folder / digest_of(key)
        computed = 0
        damaged: set[Path] = set()
        written = table

        while True:
            with explain_os_errors(table, "read"):
                segments = _open_checked(table, set(names), damaged)
                stored = _names_of(segments)
                # A name that occurs several times is computed at its first index.
                first = {name: index for index, name in reversed(list(enumerate(names))) if name not in stored}
                missing = sorted(first.values())
                if not missing:
                    return _gather(names, segments, computed)

            with explain_os_errors(table, "written"):
                writer, indices, other = _share(table, key, names, missing, damaged)
            if writer is not None:
                with writer:
                    computed += len(indices)
                    if computed > len(set(names)):
                        _require_kept(table, written)
                        raise ValueError(
                            "the source contradicts itself: its rows came with other notes or another shape"
                        )
                    written = writer.path
                    writer.write(source(indices))
            elif other is not None:
                log.warning("another process is computing the same rows in %s; waiting for it", table)
                with explain_os_errors(table, "written"):
                    other.wait()

    def look_up(self, key: Mapping[str, Any], names: set[str]) -> tuple[set[str], set[str]]:
        """Find stored rows, and remove damaged ones.

        Args:
            key: As for `get`.
            names: Names of rows.

        Returns:
            Names of the rows that are stored, and of those that were damaged.
        """
        table = self.folder / digest_of(key)
        with explain_os_errors(table, "read"):
            listed = _names_of(_of_one_origin(open_segments(table))) & names
            intact = _names_of(_open_checked(table, names, set())) & names
        return intact, listed - intact

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
        table, removed = self.folder / digest_of(key), 0
        with explain_os_errors(table, "written"), FileLock(table / "lock"):
            for segment in open_segments(table):
                if names.intersection(segment.names) and not segment.is_being_written():
                    drop(segment.path)
                    removed += len(segment.names)
        return removed


def _require_kept(table: Path, written: Path) -> None:
    """Check that the rows that were just written are still there."""
    if not written.exists():
        reason = "rows vanished just after they were written; does something remove the cache?"
        raise StoreError(f"{str(table)!r} cannot be used ({reason})")


def _open_checked(table: Path, requested: set[str], damaged: set[Path]) -> list[Segment]:
    """Open the segments whose requested rows are intact; damaged segments are removed, and added to `damaged`."""
    checked = []
    for segment in _of_one_origin(open_segments(table, damaged)):
        try:
            segment.check(requested)
            checked.append(segment)
        except DamagedError as error:
            drop(segment.path, error)
            damaged.add(segment.path)
    return checked


def _names_of(segments: list[Segment]) -> set[str]:
    return {name for segment in segments for name in segment.names}


def _of_one_origin(segments: list[Segment]) -> list[Segment]:
    """Return the segments with rows of the same origin as the newest, because older ones may be outdated."""
    filled = [segment for segment in segments if segment.names]
    return [segment for segment in filled if segment.origin == filled[-1].origin]


def _share(
    table: Path, key: Mapping[str, Any], names: Sequence[str], missing: list[int], damaged: set[Path]
) -> tuple[SegmentWriter | None, list[int], Segment | None]:
    """Begin a segment of the missing rows that no other process is computing; else find one to wait for, if any.

    Returns:
        What writes the rows, their indices, and a segment of another process with some of the missing rows.
    """
    table.mkdir(parents=True, exist_ok=True)
    # The lock is held only while journals are read.
    with FileLock(table / "lock"):
        busy = {segment.path for segment in open_segments(table, damaged) if segment.is_being_written()}
        # Journals are read again: that of a segment that is no longer being written is complete only now.
        segments = open_segments(table, damaged)
        taken = _names_of(_of_one_origin(segments))
        other = None
        for segment in segments:
            if segment.path in busy:
                taken.update(segment.promised)
                if any(names[index] in segment.promised for index in missing):
                    other = segment
            elif not segment.names:
                drop(segment.path)

        free = [index for index in missing if names[index] not in taken]
        return SegmentWriter(table, key, [names[index] for index in free]) if free else None, free, other


def _gather(names: Sequence[str], segments: list[Segment], computed: int) -> StoredRows:
    """Return the rows in the order of the names, without a copy if they are stored in that order."""
    positions = {name: (owner, row) for owner, segment in enumerate(segments) for row, name in enumerate(segment.names)}
    owners, rows = np.array([positions[name] for name in names]).T
    all_remarks = {name: remark for segment in segments for name, remark in segment.remarks.items()}
    remarks = {index: all_remarks[name] for index, name in enumerate(names) if name in all_remarks}
    notes, first = segments[owners[0]].origin["notes"], segments[owners[0]].rows

    if (owners == owners[0]).all() and (np.diff(rows) == 1).all():
        return StoredRows(first[rows[0] : rows[0] + len(names)], notes, remarks, computed)
    gathered = GatheredRows([segment.rows for segment in segments], owners, rows)
    return StoredRows(gathered if gathered.nbytes > COPIED else gathered[:], notes, remarks, computed)


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

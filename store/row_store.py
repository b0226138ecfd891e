"""A store of rows on disk that are found by name, and computed only where they are missing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.store.json_digest import digest_of
from headstart.store.segments import (
    DamagedError,
    RowSource,
    Segment,
    SegmentWriter,
    drop,
    explain_os_errors,
    open_segments,
)

log = logging.getLogger(__name__)

Compute = Callable[[list[int]], RowSource]


@dataclass(frozen=True)
class StoredRows:
    """Rows of one table.

    Attributes:
        rows: `[names, ...]` in the order of the names. Memory-mapped where they follow each other in one segment;
            what is written to them does not reach the disk.
        notes: What the source noted of all rows.
        remarks: What it noted of single rows, by their places, ascending.
        computed: Number of rows that this call computed.
    """

    rows: NDArray[Any]
    notes: dict[str, Any]
    remarks: dict[int, str]
    computed: int


class RowStore:
    """Tables on disk whose rows are computed once each, however requests for them overlap.

    A table is a folder named by the digest of its key, of segments, one for the rows that one call computed. Rows are
    there as soon as they are written, and stay where the computation is cut off. Their digests are checked before they
    are used, so that altered ones are noticed and computed again. Processes wait for each other only where one of them
    is computing rows that another wants, and for those rows alone.

    Args:
        folder: Folder of the store, created where rows are missing in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: Mapping[str, Any], names: Sequence[str], source: Compute) -> StoredRows:
        """Give rows of a table, after computing those that are missing or damaged.

        Args:
            key: Everything that all rows of the table depend on; JSON values.
            names: What one row depends on besides, such as the digest of a file; a name may come more than once.
            source: Gives what computes rows, from their places in `names`; not called where no row is missing.

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
        while True:
            with explain_os_errors(table, "read"):
                segments = _open_checked(table, set(names), damaged)
                missing = _missing(names, {name for segment in segments for name in segment.names})
                if not missing:
                    return _gather(names, segments, computed)
            with explain_os_errors(table, "written"):
                writer, places, other = _share(table, key, names, missing, damaged)
            if writer is not None:
                with writer:
                    computed += len(places)
                    if computed > len(set(names)):
                        raise ValueError(
                            "the source contradicts itself: its rows came with other notes or another shape"
                        )
                    writer.write(source(places))
            elif other is not None:
                log.warning("another process is computing the same rows in %s; waiting for it", table)
                with explain_os_errors(table, "written"):
                    other.wait()


def _open_checked(table: Path, wanted: set[str], damaged: set[Path]) -> list[Segment]:
    """Open the segments whose wanted rows are what was written; damaged ones are dropped and remembered."""
    checked = []
    for segment in _of_one_origin(open_segments(table, damaged)):
        try:
            segment.check(wanted)
            checked.append(segment)
        except DamagedError as error:
            drop(segment.path, error)
            damaged.add(segment.path)
    return checked


def _of_one_origin(segments: list[Segment]) -> list[Segment]:
    """Leave the segments with rows that agree with the newest: what a key names may have changed since older ones."""
    filled = [segment for segment in segments if segment.names]
    return [segment for segment in filled if segment.origin == filled[-1].origin]


def _missing(names: Sequence[str], there: set[str]) -> list[int]:
    """Give the place of the first occurrence of every name that is not there, in order."""
    places = {name: place for place, name in reversed(list(enumerate(names))) if name not in there}
    return sorted(places.values())


def _share(
    table: Path, key: Mapping[str, Any], names: Sequence[str], missing: list[int], damaged: set[Path]
) -> tuple[SegmentWriter | None, list[int], Segment | None]:
    """Take those of the missing rows that nobody else is computing; else say whom to wait for, if there is still one.

    The lock is held for as long as it takes to read the journals.
    """
    table.mkdir(parents=True, exist_ok=True)
    with FileLock(table / "lock"):
        busy = {segment.path for segment in open_segments(table, damaged) if segment.is_being_written()}
        # Read only now: the journal of one that is not being written any more is whole.
        segments = open_segments(table, damaged)
        taken = {name for segment in _of_one_origin(segments) for name in segment.names}
        other = None
        for segment in segments:
            if segment.path in busy:
                taken.update(segment.promised)
                if any(names[place] in segment.promised for place in missing):
                    other = segment
            elif not segment.names:
                drop(segment.path)
        places = [place for place in missing if names[place] not in taken]
        return SegmentWriter(table, key, [names[i] for i in places]) if places else None, places, other


def _gather(names: Sequence[str], segments: list[Segment], computed: int) -> StoredRows:
    """Bring the rows into the order of the names, without a copy where they lie in it already."""
    places = {name: (owner, row) for owner, segment in enumerate(segments) for row, name in enumerate(segment.names)}
    owners, rows = np.array([places[name] for name in names]).T
    remarks = {name: remark for segment in segments for name, remark in segment.remarks.items()}
    found = {place: remarks[name] for place, name in enumerate(names) if name in remarks}
    notes, first = segments[owners[0]].origin["notes"], segments[owners[0]].rows
    if (owners == owners[0]).all() and (np.diff(rows) == 1).all():
        return StoredRows(first[rows[0] : rows[0] + len(names)], notes, found, computed)
    gathered = np.empty((len(names), *first.shape[1:]), first.dtype)
    for owner in np.unique(owners):
        mine = owners == owner
        gathered[mine] = segments[owner].rows[rows[mine]]
    return StoredRows(gathered, notes, found, computed)

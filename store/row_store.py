"""A store of rows on disk that are found by name, and computed only where they are missing."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.segments import RowSource, Segment, digest_of, locked, open_segments, write_segment

log = logging.getLogger(__name__)


class StoreError(OSError):
    """The folder of a store cannot be created."""


@dataclass(frozen=True)
class Rows:
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

    A table is a folder named by the digest of its key, of segments, one for the rows that one call computed. A segment
    is complete or not there; it holds a digest of its rows and of what is said of them, which is checked whenever one
    of its rows is asked for, so that a truncated or altered one is noticed and computed again. Processes that want rows
    of the same table at once wait for the first. All segments of a table agree in what their source noted of all rows
    and in the shape and type of their rows: where newly computed rows do not, the older ones are stale and are removed.

    Args:
        folder: Folder of the store, created where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: Mapping[str, Any], names: Sequence[str], source: Callable[[list[int]], RowSource]) -> Rows:
        """Give rows of a table, after computing those that are missing, damaged or stale.

        Args:
            key: Everything that all rows of the table depend on; JSON values.
            names: What one row depends on besides, such as the digest of a file; a name may come more than once.
            source: Gives what computes rows, from their places in `names`; not called where no row is missing, and
                called a second time where older rows turn out to be stale.

        Returns:
            The rows.

        Raises:
            StoreError: The folder cannot be created.
            ValueError: There are no names, or the source contradicts itself.
        """
        if not names:
            raise ValueError("names: none given; without a row, the table's shape is not known")
        table = self.folder / digest_of(key)
        try:
            table.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{str(table)!r} cannot be created ({error})") from error
        computed = 0
        with locked(table):
            segments = open_segments(table)
            wanted = set(names)
            segments = [one for one in segments if wanted.isdisjoint(one.names) or one.is_intact()]
            if len({_kind(segment) for segment in segments}) > 1:
                # A process was killed after it had computed other rows and before it had removed the older ones.
                _remove(table, segments)
                segments = []
            while missing := _missing(names, segments):
                if computed + len(missing) > len(wanted):
                    raise ValueError(
                        "the source contradicts itself: each part of the rows came with other notes or another shape"
                    )
                new = _compute(table, key, [names[i] for i in missing], source(missing))
                computed += len(missing)
                stale = [segment for segment in segments if _kind(segment) != _kind(new)]
                _remove(table, stale)
                segments = [new] if stale else [*segments, new]
            return _gather(names, segments, computed)


def _kind(segment: Segment) -> str:
    """Give what all segments of a table agree in."""
    return json.dumps([segment.notes, segment.form], sort_keys=True)


def _remove(table: Path, stale: list[Segment]) -> None:
    if stale:
        rows = sum(len(segment.names) for segment in stale)
        log.warning("%s: %d rows are of another origin or shape than newer ones; they are removed", table, rows)
    for segment in stale:
        shutil.rmtree(segment.path)


def _missing(names: Sequence[str], segments: list[Segment]) -> list[int]:
    """Give the place of the first occurrence of every name that no segment holds, in order."""
    there = {name for segment in segments for name in segment.names}
    places = {name: place for place, name in reversed(list(enumerate(names))) if name not in there}
    return sorted(places.values())


def _compute(table: Path, key: Mapping[str, Any], names: list[str], source: RowSource) -> Segment:
    if len(source) != len(names):
        raise ValueError(f"the source was asked for {len(names)} rows and promises {len(source)}")
    return write_segment(table, key, names, source)


def _gather(names: Sequence[str], segments: list[Segment], computed: int) -> Rows:
    """Bring the rows into the order of the names, without a copy where they lie in it already."""
    places = {name: (owner, row) for owner, segment in enumerate(segments) for row, name in enumerate(segment.names)}
    owners, rows = np.array([places[name] for name in names]).T
    remarks = {name: remark for segment in segments for name, remark in segment.remarks.items()}
    found = {place: remarks[name] for place, name in enumerate(names) if name in remarks}
    first = segments[owners[0]].rows
    if (owners == owners[0]).all() and (np.diff(rows) == 1).all():
        return Rows(first[rows[0] : rows[0] + len(names)], segments[0].notes, found, computed)
    gathered = np.empty((len(names), *first.shape[1:]), first.dtype)
    for owner in np.unique(owners):
        mine = owners == owner
        gathered[mine] = segments[owner].rows[rows[mine]]
    return Rows(gathered, segments[0].notes, found, computed)

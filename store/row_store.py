"""A store of rows that are found by name, and computed only where they are missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.feature_store import Entry, FeatureStore, RowSource, digest_of, locked

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rows:
    """Rows of one table.

    Attributes:
        rows: `[names, ...]` in the order of the names. Memory-mapped where they follow each other in one segment;
            what is written to them does not reach the disk.
        notes: What the source noted.
        computed: Number of rows that this call computed.
    """

    rows: NDArray[Any]
    notes: dict[str, Any]
    computed: int


class RowStore:
    """Tables on disk whose rows are computed once each, however requests for them overlap.

    A table is a folder of segments, one for the rows that one call computed. A segment is an entry of a
    `FeatureStore`, so that it is complete or not there, and checked whenever it is opened. Processes that want
    rows of the same table at once wait for the first. All segments of a table agree in what their source noted and
    in the shape and type of their rows: where newly computed rows do not, the older ones are stale and are removed.

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
            msg = "names: none given; without a row, the table's shape is not known"
            raise ValueError(msg)
        table = FeatureStore(self.folder / digest_of(key))
        computed = 0
        with locked(table.folder):
            segments = table.entries()
            if len({_kind(segment) for segment in segments}) > 1:
                # A process was killed after it had computed other rows and before it had removed the older ones.
                _remove(table, segments)
                segments = []
            while missing := _missing(names, segments):
                if computed + len(missing) > len(set(names)):
                    msg = "the source contradicts itself: each part of the rows came with other notes or another shape"
                    raise ValueError(msg)
                new = _compute(table, key, [names[i] for i in missing], source(missing))
                computed += len(missing)
                stale = [segment for segment in segments if _kind(segment) != _kind(new)]
                _remove(table, stale)
                segments = [new] if stale else [*segments, new]
        return Rows(_gather(names, segments), segments[0].notes, computed)


def _kind(segment: Entry) -> tuple[str, str, tuple[int, ...]]:
    """Give what all segments of a table agree in."""
    return json.dumps(segment.notes, sort_keys=True), segment.rows.dtype.str, segment.rows.shape[1:]


def _remove(table: FeatureStore, stale: list[Entry]) -> None:
    if stale:
        rows = sum(len(segment.rows) for segment in stale)
        log.warning("%s: %d rows are of another origin or shape than newer ones; they are removed", table.folder, rows)
    for segment in stale:
        table.remove(segment.key)


def _missing(names: Sequence[str], segments: list[Entry]) -> list[int]:
    """Give the place of the first occurrence of every name that no segment holds, in order."""
    there = {name for segment in segments for name in segment.key["names"]}
    places = {name: place for place, name in reversed(list(enumerate(names))) if name not in there}
    return sorted(places.values())


def _compute(table: FeatureStore, key: Mapping[str, Any], names: list[str], source: RowSource) -> Entry:
    if len(source) != len(names):
        msg = f"the source was asked for {len(names)} rows and promises {len(source)}"
        raise ValueError(msg)
    return table.get({"table": key, "names": names}, source)


def _gather(names: Sequence[str], segments: list[Entry]) -> NDArray[Any]:
    """Bring the rows into the order of the names, without a copy where they lie in it already."""
    places = {
        name: (owner, row) for owner, segment in enumerate(segments) for row, name in enumerate(segment.key["names"])
    }
    owners, rows = np.array([places[name] for name in names]).T
    first = segments[owners[0]].rows
    if (owners == owners[0]).all() and (np.diff(rows) == 1).all():
        run: NDArray[Any] = first[rows[0] : rows[0] + len(names)]
        return run
    gathered = np.empty((len(names), *first.shape[1:]), first.dtype)
    for owner in np.unique(owners):
        mine = owners == owner
        gathered[mine] = segments[owner].rows[rows[mine]]
    return gathered

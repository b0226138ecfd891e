"""One table of stored rows: its segments, and the computation of missing rows, which processes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.store.name_index import NameIndex, Names, pack, take
from headstart.store.segment_writer import SegmentWriter
from headstart.store.segments import (
    DamagedError,
    RowSource,
    Segment,
    StoreError,
    drop,
    explain_os_errors,
    list_journals,
)

# How often a process looks whether another one has written the rows that it needs.
SECONDS_TO_WAIT = 1.0


class RowTable:
    """The segments of a table; a journal is read again only if it has changed.

    Args:
        folder: The folder of the table, which may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, Segment] = {}
        # Damaged segments, which a cache that can only be read keeps.
        self._damaged: set[Path] = set()

    def segments(self, *, of_any_origin: bool = False, without: str | None = None) -> list[Segment]:
        """Return the segments with rows of the same origin as the newest, because older ones may be outdated.

        Args:
            of_any_origin: Whether all segments are returned, also empty ones.
            without: Part of the names of segments that are left out.

        Raises:
            OSError: The folder, or a journal, cannot be read at the moment.
        """
        paths = [path for path in list_journals(self.folder) if path not in self._damaged]
        if without is not None:
            paths = [path for path in paths if without not in path.name]
        opened = list(filter(None, map(self.open, paths)))
        self._known = {segment.path: segment for segment in opened}
        if of_any_origin:
            return opened
        filled = [segment for segment in opened if len(segment.names)]
        return [segment for segment in filled if segment.origin == filled[-1].origin]

    def open(self, path: Path) -> Segment | None:
        """Read a journal; return None after removing the segment if it is damaged."""
        known = self._known.get(path)
        if known is not None and known.is_unchanged():
            return known
        try:
            return Segment(path)
        except DamagedError as error:
            drop(path, error)
            return None

    def check(self, segments: Sequence[Segment], requested: Sequence[NDArray[np.bool_]]) -> bool:
        """Check the digests of requested rows, and remove damaged segments.

        Args:
            segments: The segments.
            requested: Which rows of each are requested.

        Returns:
            Whether all segments are intact.
        """
        intact = True
        for segment, mask in zip(segments, requested, strict=True):
            try:
                segment.check(mask)
            except DamagedError as error:
                drop(segment.path, error)
                self._damaged.add(segment.path)
                intact = False
        return intact

    def release(self, run: str) -> None:
        """Remove the locks that the processes of a command left when they were killed; see `Filler`."""
        for path in list_journals(self.folder):
            segment = self.open(path) if f"-{run}" in path.name else None
            if segment is not None:
                segment.wait(0)


class Filler:
    """Computes missing rows of a table piece by piece, but for those that another process has or is computing.

    All rows that it computes, from `with` to its end, are in one segment.

    Args:
        table: The table.
        key: Its key.
        run: Name of the command, if several processes compute different rows for it: their segments are not read.
    """

    def __init__(self, table: RowTable, key: Mapping[str, Any], run: str = "") -> None:
        self.table, self.key, self.run = table, key, run
        self._writer: SegmentWriter | None = None
        # Indices of the segments of others, by segment and by whether promised rows count.
        self._indices: dict[tuple[Segment, bool], NameIndex] = {}

    def __enter__(self) -> Filler:
        """Return it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the segment."""
        if self._writer is not None:
            self._writer.__exit__(*exception)
            self._writer = None

    def fill(self, names: Sequence[str], source: Callable[[NDArray[np.int64]], RowSource]) -> int:
        """Compute the rows of a piece that no other process has or is computing.

        Args:
            names: Names of the rows, each once.
            source: Returns the source of rows, from their indices in `names`; not called if there are none to compute.

        Returns:
            Their number.

        Raises:
            StoreError: The table cannot be written.
            ValueError: The source contradicts itself.
        """
        with ExitStack() as ended:
            # What follows a piece that was cut off, or a torn line of the journal, is in a segment of its own.
            ended.push(self)
            with explain_os_errors(self.table.folder, "written"):
                free = self._claim(names)
            if len(free):
                assert self._writer is not None
                self._writer.write(source(free))
            ended.pop_all()
        return len(free)

    def _claim(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Promise the rows that are neither stored nor promised by another process; return their indices."""
        folder = self.table.folder
        folder.mkdir(parents=True, exist_ok=True)
        packed, taken = pack(names), np.zeros(len(names), bool)
        # The lock is held only while journals are read.
        with FileLock(folder / "lock"):
            for segment, is_busy in self._others():
                taken |= self._index(segment, is_busy).find(packed) >= 0
            free = np.flatnonzero(~taken)
            chosen = take(names, free)
            if chosen and self._writer is None:
                self._writer = SegmentWriter(folder, self.key, chosen, self.run, _newest(folder))
            elif chosen and self._writer is not None:
                self._writer.promise(chosen)
        return free

    def _others(self) -> list[tuple[Segment, bool]]:
        """Return the segments of others whose rows are not to be computed, and whether they are being written."""
        own = None if self._writer is None else self._writer.path.name
        without = f"-{self.run}" if self.run else own
        origin = self._newest_origin()
        listed = self.table.segments(of_any_origin=True, without=without)
        busy = {segment.path: segment for segment in listed if segment.is_being_written()}
        for segment in listed:
            if not len(segment.names) and segment.path not in busy:
                drop(segment.path)
        # Journals are read again: that of a segment that is no longer being written is complete only now.
        listed = self.table.segments(of_any_origin=True, without=without)
        filled = [segment for segment in listed if len(segment.names)]
        ended = [segment for segment in filled if segment.path not in busy and segment.origin == origin]
        return [(segment, True) for segment in busy.values()] + [(segment, False) for segment in ended]

    def _newest_origin(self) -> dict[str, Any] | None:
        """Return what the newest rows share, those of this command among them; None if there are no rows."""
        if self._writer is not None and self._writer.done:
            return self._writer.origin
        opened = map(self.table.open, reversed(list_journals(self.table.folder)))
        return next((segment.origin for segment in opened if segment is not None and len(segment.names)), None)

    def _index(self, segment: Segment, is_busy: bool) -> NameIndex:
        """Return the index of the names of a segment, which is made once."""
        if (segment, is_busy) not in self._indices:
            others = {pair: index for pair, index in self._indices.items() if pair[0].path != segment.path}
            names = segment.promised if is_busy else segment.names
            self._indices = {**others, (segment, is_busy): NameIndex([names])}
        return self._indices[segment, is_busy]

    def wait(self, names: Sequence[str]) -> bool:
        """Wait until another process has computed the rows that it promised, if it promised any of these.

        Returns:
            Whether there was one.
        """
        packed = pack(names)
        with explain_os_errors(self.table.folder, "written"):
            for segment in self.table.segments(of_any_origin=True):
                pending = segment.promised[len(segment.names) :]
                needed = pending[np.isin(pending, packed)]
                if len(needed) and segment.is_being_written():
                    # Its process may go on with other rows for hours.
                    while not segment.wait(SECONDS_TO_WAIT) and not self._has(segment.path, needed):
                        pass
                    return True
        return False

    def _has(self, path: Path, names: Names) -> bool:
        """Whether a segment has rows, or is gone."""
        segment = self.table.open(path)
        return segment is None or bool(np.isin(names, segment.names).all())

    def require_kept(self) -> None:
        """Check that the rows that were just written are still there.

        Raises:
            StoreError: They are not.
        """
        if self._writer is not None and not self._writer.path.exists():
            reason = "rows vanished just after they were written; does something remove the cache?"
            raise StoreError(f"{str(self.table.folder)!r} cannot be used ({reason})")


def _newest(folder: Path) -> int:
    """Return the time in the name of the newest segment, 0 if there is none."""
    stamps = [path.name.partition("-")[0] for path in list_journals(folder)]
    return max((int(stamp) for stamp in stamps if stamp.isdecimal()), default=0)

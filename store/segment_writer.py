"""The writing of a segment of rows, which other processes may read meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.output.files import replacing
from headstart.store.segments import (
    JOURNAL,
    LOCK,
    ROWS,
    DamagedError,
    RowSource,
    Segment,
    digest_chunk,
    drop,
    explain_os_errors,
)


class SegmentWriter:
    """Writes a new segment. Other processes see which rows are to come, and wait for them.

    Args:
        table: The folder of the table.
        key: Everything that all rows of the table depend on, for readers of the journal.
        names: Names of the rows to come first.
        run: Beginning of the second part of the segment's name.
        newest: Time in the name of the newest segment, in nanoseconds; the clock of another machine may be ahead.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(
        self, table: Path, key: Mapping[str, Any], names: Sequence[str], run: str = "", newest: int = 0
    ) -> None:
        # Names of the rows that are promised and not written, the number of the written ones, and what these share.
        self.names = names
        self.done = 0
        self.origin: dict[str, Any] = {}
        # The order of names is that in which segments were created.
        stamp = max(time.time_ns(), newest + 1)
        self.path = table / f"{stamp:020}-{run}{secrets.token_hex(4)}{JOURNAL}"
        lock = FileLock(self.path.with_suffix(LOCK))
        with ExitStack() as files:
            files.callback(self._leave, lock)
            lock.acquire()
            self.rows = files.enter_context(self.path.with_suffix(ROWS).open("xb", buffering=0))
            with replacing(self.path) as partial:
                partial.write_text(json.dumps({"key": dict(key), "names": list(names)}) + "\n")
            self.journal = files.enter_context(self.path.open("ab", buffering=0))
            self.files = files.pop_all()

    def __enter__(self) -> SegmentWriter:
        """Return the writer."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the segment, with the rows that are written."""
        self.files.close()

    def promise(self, names: Sequence[str]) -> None:
        """Name further rows to come, when those that were named before are written.

        Raises:
            OSError: The journal cannot be written.
        """
        self._note({"names": list(names)})
        self.names = names

    def write(self, source: RowSource) -> None:
        """Compute the promised rows and write them.

        Args:
            source: The source of the rows.

        Raises:
            StoreError: They cannot be written.
            ValueError: The source yields more or fewer rows than were promised.
        """
        if len(source) != len(self.names):
            raise ValueError(f"the source was asked for {len(self.names)} rows and promises {len(source)}")
        count, first = 0, self.done
        for rows in source:
            count += len(rows)
            if count <= len(source):
                with explain_os_errors(self.path.parent, "written"):
                    self._append(np.ascontiguousarray(rows), source, self.done - first)
        if count != len(source):
            raise ValueError(f"the source promised {len(source)} rows and gave {count}")

    def _append(self, rows: NDArray[Any], source: RowSource, first: int) -> None:
        """Write a chunk, whose first row has an index in the source."""
        names = list(self.names[: len(rows)])
        remarks = {name: source.remarks[i] for i, name in enumerate(names, first) if i in source.remarks}
        origin = {"form": [rows.dtype.str, list(rows.shape[1:])], "notes": dict(source.notes)}
        if self.done and origin != self.origin:
            raise ValueError("the source contradicts itself: its rows came with other notes or another shape")
        lines: list[Any] = [] if self.done else [origin]
        lines.append(
            {"count": len(rows), "remarks": remarks, "sha256": digest_chunk(names, origin, remarks, rows.data)}
        )
        _write_all(self.rows, rows.data.cast("B"))
        self._note(*lines)
        self.origin = origin
        self.done += len(rows)
        self.names = self.names[len(rows) :]

    def _note(self, *lines: object) -> None:
        _write_all(self.journal, memoryview("".join(json.dumps(line) + "\n" for line in lines).encode()))
        if not self.path.exists():
            raise OSError("it was removed while it was written; try again")

    def _leave(self, lock: FileLock) -> None:
        if not self.done:
            drop(self.path)
        elif self.names:
            # A full disk may hold a part of rows that the journal does not list.
            with suppress(OSError, DamagedError):
                segment = Segment(self.path)
                os.truncate(self.path.with_suffix(ROWS), len(segment.names) * segment.row_bytes)
        lock.release()
        self.path.with_suffix(LOCK).unlink(missing_ok=True)


def _write_all(file: FileIO, content: memoryview) -> None:
    # The file has no buffer, which would be written once more when it is closed, even on a full disk.
    while content:
        content = content[file.write(content) :]

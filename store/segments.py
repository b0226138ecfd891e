"""Segments of a table of rows: each written by one process, chunk after chunk, and read by any number of others.

A segment is two files: the rows as they are in memory, and a journal. The journal's first line names the rows to come;
the second has the values that all of them share; every further line stands for a chunk of written rows, and has their
digest. A line is written after its rows, so the rows of every line exist however the writing ends.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.output.files import replacing

log = logging.getLogger(__name__)

JOURNAL, ROWS, LOCK, CHECKED = ".journal", ".rows", ".lock", ".checked"
# A file that was written this shortly ago may change again within the resolution of its time.
SETTLED = 2_000_000_000


class StoreError(OSError):
    """A table cannot be read or written; the message says which and why."""


class DamagedError(ValueError):
    """A segment differs from what was written."""


class RowSource(Protocol):
    """Computes rows, chunk by chunk."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Compute the rows, in chunks `[rows of the chunk, ...]` in order."""

    @property
    def notes(self) -> dict[str, Any]:
        """Notes on all rows, known with the first chunk; JSON values."""

    @property
    def remarks(self) -> Mapping[int, str]:
        """Remarks on single rows, by their indices, known with their chunk."""


class Chunk(NamedTuple):
    """Rows that were written together: the first index, the end index, remarks by name, and the digest."""

    first: int
    end: int
    remarks: dict[str, str]
    sha256: str


class Segment:
    """A segment as its journal describes it.

    Args:
        journal: The journal's file.

    Attributes:
        promised: Names of all rows, also of those that are or were still to be written.
        names: Names of the written rows.
        origin: Values that all rows share, the `form` (type and shape of one) and the `notes` of their source.
        chunks: The written rows.

    Raises:
        DamagedError: It differs from what was written.
        OSError: It cannot be read at the moment.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal
        state = _state_of(journal)
        # An incomplete last line is being written, or was cut off.
        lines = journal.read_bytes().split(b"\n")[:-1]
        self.state = [state, _state_of(journal.with_suffix(ROWS))]

        try:
            head, *others = map(json.loads, lines)
            self.promised: list[str] = head["names"]
            self.origin: dict[str, Any] = others[0] if others else {"form": ["|u1", []], "notes": {}}
            self.chunks: list[Chunk] = []
            end = 0
            for chunk in others[1:]:
                first, end = end, end + chunk["count"]
                self.chunks.append(Chunk(first, end, chunk["remarks"], chunk["sha256"]))

            self.names = self.promised[:end]
            kind, shape = self.origin["form"]
            self.dtype, self.shape = np.dtype(kind), (end, *shape)
            self.row_bytes = self.dtype.itemsize * math.prod(shape)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file raises errors of many unrelated kinds
            raise DamagedError(repr(error)) from error
        if end * self.row_bytes > self.state[1][0]:
            raise DamagedError("its rows are cut off")

    @cached_property
    def rows(self) -> NDArray[Any]:
        """Memory-mapped array, `[rows, ...]`; changes do not reach the disk."""
        return np.memmap(self.path.with_suffix(ROWS), self.dtype, "c", shape=self.shape)

    @property
    def remarks(self) -> dict[str, str]:
        """Remarks on single rows, by name."""
        return {name: remark for chunk in self.chunks for name, remark in chunk.remarks.items()}

    def check(self, requested: set[str]) -> None:
        """Check the digests of the chunks with requested rows; those of unchanged files are checked once.

        Args:
            requested: Names of the rows; other names do not matter.

        Raises:
            DamagedError: A chunk differs from what was written.
            OSError: The rows cannot be read at the moment.
        """
        checked = self._checked()
        unchecked = [
            chunk
            for chunk in self.chunks
            if chunk.first not in checked and not requested.isdisjoint(self.names[chunk.first : chunk.end])
        ]
        if not unchecked:
            return

        with self.path.with_suffix(ROWS).open("rb") as file:
            for chunk in unchecked:
                file.seek(chunk.first * self.row_bytes)
                content = file.read((chunk.end - chunk.first) * self.row_bytes)
                if _digest(self.names[chunk.first : chunk.end], self.origin, chunk.remarks, content) != chunk.sha256:
                    raise DamagedError("altered")

        if time.time_ns() - max(time_of_change for _, time_of_change, _ in self.state) > SETTLED:
            checked |= {chunk.first for chunk in unchecked}
            # A cache that cannot be written is checked every time.
            with suppress(OSError), replacing(self.path.with_suffix(CHECKED)) as partial:
                partial.write_text(json.dumps([self.state, sorted(checked)]))

    def _checked(self) -> set[int]:
        """Return the first rows of the chunks that were checked since the files changed."""
        # A damaged file counts as none.
        with suppress(OSError, ValueError, TypeError, RecursionError):
            _state_of(self.path.with_suffix(CHECKED))
            state, checked = json.loads(self.path.with_suffix(CHECKED).read_text())
            return {chunk.first for chunk in self.chunks}.intersection(checked) if state == self.state else set()
        return set()

    def is_being_written(self) -> bool:
        """Whether rows are still to come; not if the process that wrote them has ended."""
        return len(self.names) < len(self.promised) and not self.wait(0)

    def wait(self, seconds: float = -1) -> bool:
        """Wait until no more rows are to come.

        Args:
            seconds: How long; a negative number for as long as it takes.

        Returns:
            Whether that is so.
        """
        lock = self.path.with_suffix(LOCK)
        try:
            with FileLock(lock, seconds):
                lock.unlink(missing_ok=True)
        except Timeout:
            return False
        return True


class SegmentWriter:
    """Writes a new segment. Other processes see which rows are to come, and wait for them.

    Args:
        table: The folder of the table.
        key: Everything that all rows of the table depend on, for readers of the journal.
        names: Names of the rows to come.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, table: Path, key: Mapping[str, Any], names: Sequence[str]) -> None:
        self.names = names
        self.done = 0
        # The order of names is that in which segments were created.
        self.path = table / f"{time.time_ns():020}-{secrets.token_hex(4)}{JOURNAL}"
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

    def write(self, source: RowSource) -> None:
        """Compute the rows and write them.

        Args:
            source: The source of the rows.

        Raises:
            StoreError: They cannot be written.
            ValueError: The source yields more or fewer rows than were promised.
        """
        if len(source) != len(self.names):
            raise ValueError(f"the source was asked for {len(self.names)} rows and promises {len(source)}")
        for rows in source:
            with explain_os_errors(self.path.parent, "written"):
                self._append(np.ascontiguousarray(rows), source)
        if self.done != len(self.names):
            raise ValueError(f"the source promised {len(self.names)} rows and gave {self.done}")

    def _append(self, rows: NDArray[Any], source: RowSource) -> None:
        end = self.done + len(rows)
        names = list(self.names[self.done : end])
        remarks = {name: source.remarks[i] for i, name in enumerate(names, self.done) if i in source.remarks}
        origin = {"form": [rows.dtype.str, list(rows.shape[1:])], "notes": dict(source.notes)}
        lines: list[Any] = [] if self.done else [origin]
        lines.append({"count": len(rows), "remarks": remarks, "sha256": _digest(names, origin, remarks, rows.data)})
        _write_all(self.rows, rows.data.cast("B"))
        _write_all(self.journal, memoryview("".join(json.dumps(line) + "\n" for line in lines).encode()))
        if not self.path.exists():
            raise OSError("it was removed while it was written; try again")
        self.done = end

    def _leave(self, lock: FileLock) -> None:
        if not self.done:
            drop(self.path)
        elif self.done < len(self.names):
            # A full disk may hold a part of rows that the journal does not list.
            with suppress(OSError, DamagedError):
                segment = Segment(self.path)
                os.truncate(self.path.with_suffix(ROWS), len(segment.names) * segment.row_bytes)
        lock.release()
        self.path.with_suffix(LOCK).unlink(missing_ok=True)


def open_segments(table: Path, without: Collection[Path] = ()) -> list[Segment]:
    """Read the journals of a table, the oldest first, and remove damaged segments; rows are not read.

    Args:
        table: The folder of the table, which may be missing.
        without: Journals that are left out.

    Returns:
        The segments.

    Raises:
        OSError: The folder, or a journal, cannot be read at the moment.
    """
    try:
        with os.scandir(table) as entries:
            paths = sorted(Path(entry.path) for entry in entries if entry.name.endswith(JOURNAL) and entry.is_file())
    except FileNotFoundError:
        return []
    segments = []
    for path in paths:
        if path not in without:
            try:
                segments.append(Segment(path))
            except DamagedError as error:
                drop(path, error)
    return segments


def drop(journal: Path, reason: Exception | None = None) -> None:
    """Remove a segment, as far as possible.

    Args:
        journal: Its journal.
        reason: The damage, if there is any.
    """
    if reason is not None:
        log.warning("%s is damaged (%s); its rows are computed again", journal, reason)
    # The journal is removed last, because the files that a killed process leaves are found by it.
    for suffix in (ROWS, CHECKED, JOURNAL):
        with suppress(OSError):
            journal.with_suffix(suffix).unlink(missing_ok=True)


@contextmanager
def explain_os_errors(path: Path, verb: str) -> Iterator[None]:
    """Raise errors of the system as a StoreError that names the file or folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be {verb} ({error.strerror or error})") from error


def _state_of(path: Path) -> list[int]:
    """Return values that change whenever a file does."""
    try:
        state = path.stat()
    except FileNotFoundError as error:
        raise DamagedError(f"{path.name} is missing") from error
    if not stat.S_ISREG(state.st_mode):
        raise DamagedError(f"{path.name} is no file")
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def _digest(
    names: Sequence[str], origin: Mapping[str, Any], remarks: Mapping[str, str], rows: bytes | memoryview
) -> str:
    digest = hashlib.sha256(json.dumps([list(names), origin, remarks], sort_keys=True).encode())
    digest.update(rows)
    return digest.hexdigest()


def _write_all(file: FileIO, content: memoryview) -> None:
    # The file has no buffer, which would be written once more when it is closed, even on a full disk.
    while content:
        content = content[file.write(content) :]

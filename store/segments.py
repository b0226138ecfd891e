"""Segments of a table of rows: each written by one process, chunk after chunk, and read by any number of others.

A segment is two files: the rows as they are in memory, and a journal. The journal's first line names the rows that are
to come; the second says what all of them agree in; every further line stands for a chunk of rows that is there, with a
digest of it. A line is written after the rows that it stands for, so that whatever ends the writing, what the journal
says is there.
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

log = logging.getLogger(__name__)

JOURNAL, ROWS, LOCK, CHECKED = ".journal", ".rows", ".lock", ".checked"
# A file that was written so short a time ago may change again without another time of change.
SETTLED = 2_000_000_000


class StoreError(OSError):
    """A table cannot be read or written; the message says which and why."""


class DamagedError(ValueError):
    """A segment is not what was written."""


class RowSource(Protocol):
    """What computes rows, chunk by chunk."""

    def __len__(self) -> int:
        """Give the number of rows."""

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Compute the rows, in chunks `[rows of the chunk, ...]` in order."""

    @property
    def notes(self) -> dict[str, Any]:
        """What is to be kept of all rows, known once the first chunk is; JSON values."""

    @property
    def remarks(self) -> Mapping[int, str]:
        """What is to be kept of single rows, by their places, known once their chunk is."""


class Chunk(NamedTuple):
    """Rows that were written together: the places of the first and behind the last, remarks by name, and the digest."""

    first: int
    end: int
    remarks: dict[str, str]
    sha256: str


class Segment:
    """A segment as its journal describes it.

    Args:
        journal: The journal's file.

    Attributes:
        promised: What each row is found by that is or was to be written.
        names: Those of the rows that are there.
        origin: What all rows agree in, the `form` (type and shape of one) and the `notes` of their source.
        chunks: The rows that are there.

    Raises:
        DamagedError: It is not what was written.
        OSError: It cannot be read at the moment.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal
        state = _state_of(journal)
        # What follows the last line break is being written, or was cut off.
        lines = journal.read_bytes().split(b"\n")[:-1]
        self.state = [state, _state_of(journal.with_suffix(ROWS))]
        try:
            head, *said = map(json.loads, lines)
            self.promised: list[str] = head["names"]
            self.origin: dict[str, Any] = said[0] if said else {"form": ["|u1", []], "notes": {}}
            self.chunks: list[Chunk] = []
            end = 0
            for chunk in said[1:]:
                first, end = end, end + chunk["count"]
                self.chunks.append(Chunk(first, end, chunk["remarks"], chunk["sha256"]))
            self.names = self.promised[:end]
            kind, shape = self.origin["form"]
            self.dtype, self.shape = np.dtype(kind), (end, *shape)
            self.row_bytes = self.dtype.itemsize * math.prod(shape)
        except MemoryError:
            raise
        except Exception as error:  # what is damaged raises errors of many unrelated kinds
            raise DamagedError(repr(error)) from error
        if end * self.row_bytes > self.state[1][0]:
            raise DamagedError("its rows are cut off")

    @cached_property
    def rows(self) -> NDArray[Any]:
        """Memory-mapped array, `[rows, ...]`; what is written to it does not reach the disk."""
        return np.memmap(self.path.with_suffix(ROWS), self.dtype, "c", shape=self.shape)

    @property
    def remarks(self) -> dict[str, str]:
        """What is noted of single rows, by name."""
        return {name: remark for chunk in self.chunks for name, remark in chunk.remarks.items()}

    def check(self, wanted: set[str]) -> None:
        """Compare the digests of the chunks that hold some rows; those of unchanged files are compared once.

        Args:
            wanted: Names of the rows; other names do not matter.

        Raises:
            DamagedError: A chunk is not what was written.
            OSError: The rows cannot be read at the moment.
        """
        checked = self._checked()
        asked = [
            c for c in self.chunks if c.first not in checked and not wanted.isdisjoint(self.names[c.first : c.end])
        ]
        if not asked:
            return
        with self.path.with_suffix(ROWS).open("rb") as file:
            for chunk in asked:
                file.seek(chunk.first * self.row_bytes)
                content = file.read((chunk.end - chunk.first) * self.row_bytes)
                if _digest(self.names[chunk.first : chunk.end], self.origin, chunk.remarks, content) != chunk.sha256:
                    raise DamagedError("altered")
        if time.time_ns() - max(time_of_change for _, time_of_change, _ in self.state) > SETTLED:
            checked |= {chunk.first for chunk in asked}
            # A cache that cannot be written is checked every time.
            with suppress(OSError):
                _write_whole(self.path.with_suffix(CHECKED), json.dumps([self.state, sorted(checked)]))

    def _checked(self) -> set[int]:
        """Give the first rows of the chunks that were checked since the files changed."""
        # Whatever else is in the file is as good as none.
        with suppress(OSError, ValueError, TypeError, RecursionError):
            _state_of(self.path.with_suffix(CHECKED))
            state, places = json.loads(self.path.with_suffix(CHECKED).read_text())
            return {chunk.first for chunk in self.chunks}.intersection(places) if state == self.state else set()
        return set()

    def is_being_written(self) -> bool:
        """Tell whether rows are still to come: not where the process that wrote them was ended."""
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
    """Writes a new segment. Until it is done, others see that it is to come, and wait for it.

    Args:
        table: The folder of the table.
        key: Everything that all rows of the table depend on, for people who look for it.
        names: What the rows are found by that are to come.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, table: Path, key: Mapping[str, Any], names: Sequence[str]) -> None:
        self.names = names
        self.done = 0
        # Segments in the order of their names are in that in which they were begun.
        self.path = table / f"{time.time_ns():020}-{secrets.token_hex(4)}{JOURNAL}"
        lock = FileLock(self.path.with_suffix(LOCK))
        with ExitStack() as files:
            files.callback(self._leave, lock)
            lock.acquire()
            self.rows = files.enter_context(self.path.with_suffix(ROWS).open("xb", buffering=0))
            _write_whole(self.path, json.dumps({"key": dict(key), "names": list(names)}) + "\n")
            self.journal = files.enter_context(self.path.open("ab", buffering=0))
            self.files = files.pop_all()

    def __enter__(self) -> SegmentWriter:
        """Begin."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End; what is there stays."""
        self.files.close()

    def write(self, source: RowSource) -> None:
        """Compute the rows and write them.

        Args:
            source: What computes the rows.

        Raises:
            StoreError: They cannot be written.
            ValueError: The source gives more or fewer rows than were promised.
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
        said: list[Any] = [] if self.done else [origin]
        said.append({"count": len(rows), "remarks": remarks, "sha256": _digest(names, origin, remarks, rows.data)})
        _write_all(self.rows, rows.data.cast("B"))
        _write_all(self.journal, memoryview("".join(json.dumps(line) + "\n" for line in said).encode()))
        self.done = end

    def _leave(self, lock: FileLock) -> None:
        if not self.done:
            drop(self.path)
        elif self.done < len(self.names):
            # A full disk may hold a part of the rows that the journal does not tell of.
            with suppress(OSError, DamagedError):
                segment = Segment(self.path)
                os.truncate(self.path.with_suffix(ROWS), len(segment.names) * segment.row_bytes)
        lock.release()
        self.path.with_suffix(LOCK).unlink(missing_ok=True)


def open_segments(table: Path, without: Collection[Path] = ()) -> list[Segment]:
    """Read the journals of a table, the oldest first, and drop damaged ones; rows are not read.

    Args:
        table: The folder of the table, which may be missing.
        without: Journals that are passed over.

    Returns:
        The segments that have rows or are to have some.

    Raises:
        OSError: The folder, or a journal, cannot be read at the moment.
    """
    try:
        with os.scandir(table) as entries:
            paths = sorted(Path(entry.path) for entry in entries if entry.name.endswith(JOURNAL) and entry.is_file())
    except FileNotFoundError:
        return []
    found = []
    for path in paths:
        if path not in without:
            try:
                found.append(Segment(path))
            except DamagedError as error:
                drop(path, error)
    return found


def drop(journal: Path, reason: Exception | None = None) -> None:
    """Remove a segment, as far as that can be done.

    Args:
        journal: Its journal.
        reason: What is wrong with it, where something is.
    """
    if reason is not None:
        log.warning("%s is damaged (%s); its rows are computed again", journal, reason)
    # The journal last: what a kill leaves is found by it.
    for suffix in (ROWS, CHECKED, JOURNAL):
        with suppress(OSError):
            journal.with_suffix(suffix).unlink(missing_ok=True)


@contextmanager
def explain_os_errors(path: Path, verb: str) -> Iterator[None]:
    """Say which file or folder an error of the system was about."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be {verb} ({error.strerror or error})") from error


def _state_of(path: Path) -> list[int]:
    """Give what changes whenever a file does."""
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


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is complete or not there."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        partial.write_text(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write_all(file: FileIO, content: memoryview) -> None:
    # Without a buffer, which would be written once more when a full disk is left.
    while content:
        content = content[file.write(content) :]

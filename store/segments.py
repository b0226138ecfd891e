"""Segments of a table of rows: each written by one process, chunk after chunk (`segment_writer`), and read by others.

A segment is two files: the rows as they are in memory, and a journal. The journal's first line names the rows to come;
the second has the values that all of them share; every further line stands for a chunk of written rows, and has their
digest; or it names further rows to come. A line is written after its rows, so the rows of every line exist however the
writing ends.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.output.files import replacing
from headstart.store.name_index import Names, pack, unpack

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
        promised: Names of all rows, also of those that are or were still to be written, packed, `[rows]`.
        names: Names of the written rows, packed, `[written rows]`.
        origin: Values that all rows share, the `form` (type and shape of one) and the `notes` of their source.
        chunks: The written rows.

    Raises:
        DamagedError: It differs from what was written.
        OSError: It cannot be read at the moment.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal
        state = _state_of(journal)
        promised: list[Names] = []
        self.origin: dict[str, Any] = {"form": ["|u1", []], "notes": {}}
        self.chunks: list[Chunk] = []
        end = 0

        try:
            with journal.open("rb") as file:
                for text in file:
                    # An incomplete last line is being written, or was cut off.
                    line: dict[str, Any] = json.loads(text) if text.endswith(b"\n") else {"form": None}
                    if "names" in line:
                        promised.append(pack(line["names"]))
                    elif "count" in line:
                        first, end = end, end + line["count"]
                        self.chunks.append(Chunk(first, end, line["remarks"], line["sha256"]))
                    elif line["form"]:
                        self.origin = line

            self.promised: Names = np.concatenate(promised)
            self.names = self.promised[:end]
            kind, shape = self.origin["form"]
            self.dtype, self.shape = np.dtype(kind), (end, *shape)
            self.row_bytes = self.dtype.itemsize * math.prod(shape)
        except (MemoryError, OSError):
            raise
        except Exception as error:  # a damaged file raises errors of many unrelated kinds
            raise DamagedError(repr(error)) from error
        self.state = [state, _state_of(journal.with_suffix(ROWS))]
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

    def check(self, requested: NDArray[np.bool_]) -> None:
        """Check the digests of the chunks with requested rows; those of unchanged files are checked once.

        Args:
            requested: Which of the written rows are requested, `[written rows]`.

        Raises:
            DamagedError: A chunk differs from what was written.
            OSError: The rows cannot be read at the moment.
        """
        checked = self._checked()
        unchecked = [
            chunk for chunk in self.chunks if chunk.first not in checked and requested[chunk.first : chunk.end].any()
        ]
        if not unchecked:
            return

        with self.path.with_suffix(ROWS).open("rb") as file:
            for chunk in unchecked:
                file.seek(chunk.first * self.row_bytes)
                content = file.read((chunk.end - chunk.first) * self.row_bytes)
                names = unpack(self.names[chunk.first : chunk.end])
                if digest_chunk(names, self.origin, chunk.remarks, content) != chunk.sha256:
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

    def is_unchanged(self) -> bool:
        """Whether its files are as they were when it was read."""
        try:
            return self.state == [_state_of(self.path), _state_of(self.path.with_suffix(ROWS))]
        except (OSError, DamagedError):
            return False

    def is_being_written(self) -> bool:
        """Whether promised rows are still to come; not if the process that wrote them has ended."""
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


def list_journals(table: Path) -> list[Path]:
    """List the journals of a table, the oldest first.

    Args:
        table: The folder of the table, which may be missing.

    Raises:
        OSError: The folder cannot be read at the moment.
    """
    try:
        with os.scandir(table) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.endswith(JOURNAL) and entry.is_file())
    except FileNotFoundError:
        return []


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


def digest_chunk(
    names: Sequence[str], origin: Mapping[str, Any], remarks: Mapping[str, str], rows: bytes | memoryview
) -> str:
    """Return the digest of a chunk of rows: SHA-256 of their names, of what all rows share, of remarks and bytes."""
    digest = hashlib.sha256(json.dumps([list(names), origin, remarks], sort_keys=True).encode())
    digest.update(rows)
    return digest.hexdigest()

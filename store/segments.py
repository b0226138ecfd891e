"""Segments of a table of rows on disk: complete or not there, and checked before their rows are used."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

log = logging.getLogger(__name__)

ROWS = "rows.npy"
MANIFEST = "manifest.json"
PARTIAL = ".partial"


class RowSource(Protocol):
    """What computes rows, chunk by chunk."""

    def __len__(self) -> int:
        """Give the number of rows."""

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Compute the rows, in chunks `[rows of the chunk, ...]` in order."""

    @property
    def notes(self) -> dict[str, Any]:
        """What is to be kept of all rows, known once they are computed; JSON values."""

    @property
    def remarks(self) -> Mapping[int, str]:
        """What is to be kept of single rows, by their places, known once they are computed."""


@dataclass(frozen=True)
class Segment:
    """A segment, as its manifest describes it.

    Attributes:
        path: Its folder.
        names: What each of its rows is found by.
        notes: What the source noted of all rows.
        remarks: What it noted of single ones, by name.
        form: Type and shape of one row.
        sha256: Digest of the rows and of all that is said here.
    """

    path: Path
    names: list[str]
    notes: dict[str, Any]
    remarks: dict[str, str]
    form: list[Any]
    sha256: str

    @cached_property
    def rows(self) -> NDArray[Any]:
        """Memory-mapped array, `[rows, ...]`; what is written to it does not reach the disk."""
        rows: NDArray[Any] = np.load(self.path / ROWS, mmap_mode="c", allow_pickle=False)
        return rows

    def is_intact(self) -> bool:
        """Tell whether the rows and what is said of them are those that were written; it reads all of them."""
        try:
            digest = _begin_digest(self.rows)
            digest.update(self.rows.data)
            digest.update(_encode(self.names, self.notes, self.remarks))
        except Exception as error:  # damaged files raise errors of many unrelated kinds
            return drop_damaged(self.path, repr(error))
        same = digest.hexdigest() == self.sha256 and _form(self.rows) == self.form and len(self.rows) == len(self.names)
        return same or drop_damaged(self.path, "altered")


def open_segments(table: Path) -> list[Segment]:
    """Read what is said of all segments of a table, and drop what is damaged or was interrupted; rows are not read.

    The caller holds the table's lock.

    Args:
        table: The folder of the table.

    Returns:
        The segments.
    """
    for partial in list(table.glob(f"*{PARTIAL}")):
        shutil.rmtree(partial)
    found = []
    for path in sorted(path for path in table.iterdir() if path.is_dir()):
        try:
            manifest = json.loads((path / MANIFEST).read_text())
            parts = (manifest[part] for part in ("names", "notes", "remarks", "form", "sha256"))
            found.append(Segment(path, *parts))
        except Exception as error:  # as above
            drop_damaged(path, repr(error))
    return found


def drop_damaged(path: Path, reason: str) -> bool:
    """Remove a damaged segment.

    Args:
        path: Its folder.
        reason: What is wrong with it.

    Returns:
        False: it is not intact.
    """
    log.warning("%s is damaged (%s); its rows are computed again", path, reason)
    shutil.rmtree(path)
    return False


def write_segment(table: Path, key: Mapping[str, Any], names: Sequence[str], source: RowSource) -> Segment:
    """Compute a segment; it is written under another name, and renamed when it is complete.

    Args:
        table: The folder of the table, whose lock the caller holds.
        key: Everything that all rows of the table depend on, for people who look for it.
        names: What each row is found by.
        source: What computes the rows.

    Returns:
        The segment.

    Raises:
        ValueError: The source gives more or fewer rows than there are names.
    """
    path = table / digest_of({"names": list(names)})
    partial = path.with_suffix(PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        rows, digest = _write(partial / ROWS, len(names), source)
        remarks = {names[place]: remark for place, remark in source.remarks.items()}
        digest.update(_encode(names, source.notes, remarks))
        segment = Segment(path, list(names), source.notes, remarks, _form(rows), digest.hexdigest())
        said = {name: value for name, value in vars(segment).items() if name != "path"}
        (partial / MANIFEST).write_text(json.dumps({"table": dict(key), **said}))
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return segment


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder, after waiting for another process or thread that holds it.

    Args:
        path: The folder; its lock is a file beside it.
    """
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.warning("another process is computing the same rows in %s; waiting for it", path)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def digest_of(key: Mapping[str, Any]) -> str:
    """Give the name of a key's folder.

    Args:
        key: JSON values; tuples and lists are the same.

    Returns:
        64 hexadecimal digits.
    """
    # As JSON gives it back, so that a key of numbers and one of texts that are alike have one name.
    plain = json.loads(json.dumps(key))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _write(path: Path, count: int, source: RowSource) -> tuple[NDArray[Any], hashlib._Hash]:
    """Write the source's rows as they come, and digest them on the way."""
    rows: np.memmap[Any, Any] | None = None
    done = 0
    for chunk in source:
        if rows is None:
            rows = np.lib.format.open_memmap(path, mode="w+", dtype=chunk.dtype, shape=(count, *chunk.shape[1:]))
            digest = _begin_digest(rows)
        rows[done : done + len(chunk)] = chunk
        digest.update(np.ascontiguousarray(chunk).data)
        done += len(chunk)
    if rows is None or done != count:
        raise ValueError(f"the source promised {count} rows and gave {done}")
    rows.flush()
    return rows, digest


def _form(rows: NDArray[Any]) -> list[Any]:
    return [rows.dtype.str, list(rows.shape[1:])]


def _encode(names: Sequence[str], notes: Mapping[str, Any], remarks: Mapping[str, str]) -> bytes:
    return json.dumps([list(names), notes, remarks], sort_keys=True).encode()


def _begin_digest(rows: NDArray[Any]) -> hashlib._Hash:
    """Begin with what the file's header says, which could be altered as well."""
    return hashlib.sha256(f"{rows.dtype.str} {rows.shape} {rows.flags.c_contiguous}".encode())

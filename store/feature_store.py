"""A store of computed rows on disk, keyed by content."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

log = logging.getLogger(__name__)

ROWS = "rows.npy"
MANIFEST = "manifest.json"
PARTIAL = ".partial"


class StoreError(OSError):
    """The folder of a store cannot be created."""


class RowSource(Protocol):
    """What computes the rows of an entry, chunk by chunk."""

    def __len__(self) -> int:
        """Give the number of rows."""

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Compute the rows, in chunks `[rows of the chunk, ...]` in order."""

    @property
    def notes(self) -> dict[str, Any]:
        """What else is to be kept, known once all rows are computed; JSON values."""


@dataclass(frozen=True)
class Entry:
    """A complete entry of the store.

    Attributes:
        key: Everything that the rows depend on, as JSON gives it back: tuples become lists.
        rows: Memory-mapped array, `[rows, ...]`; what is written to it does not reach the disk.
        notes: What the source noted.
        computed: Whether this call computed it, rather than found it.
    """

    key: dict[str, Any]
    rows: NDArray[Any]
    notes: dict[str, Any]
    computed: bool


class FeatureStore:
    """Rows on disk that are computed once per key.

    An entry is a folder named by the digest of its key. It is written under another name and renamed when it is
    complete; its manifest holds a digest of the rows, which is checked whenever the entry is opened, so that a
    truncated or altered entry is noticed and computed again. Processes that want the same entry at once wait for
    the first.

    Args:
        folder: Folder of the store, created where it is missing.

    Raises:
        StoreError: The folder cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{str(folder)!r} cannot be created ({error})"
            raise StoreError(msg) from error

    def get(self, key: Mapping[str, Any], source: RowSource) -> Entry:
        """Open an entry, after computing it where it is missing or damaged.

        Args:
            key: Everything that the rows depend on; JSON values.
            source: What computes the rows; not touched where the entry exists.

        Returns:
            The entry.
        """
        path = self._path(key)
        with locked(path):
            entry = self._open(path)
            if entry is None:
                self._compute(path, key, source)
                entry = replace(self._read(path)[0], computed=True)
            return entry

    def entries(self) -> list[Entry]:
        """Open all entries, and drop what is damaged or was interrupted.

        The caller makes sure that nobody else computes an entry of this store meanwhile.

        Returns:
            The complete entries.
        """
        for partial in list(self.folder.glob(f"*{PARTIAL}")):
            shutil.rmtree(partial)
        found = [self._open(path) for path in sorted(self.folder.iterdir()) if path.is_dir()]
        return [entry for entry in found if entry is not None]

    def remove(self, key: Mapping[str, Any]) -> None:
        """Remove an entry.

        Args:
            key: Its key.
        """
        shutil.rmtree(self._path(key))

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self.folder / digest_of(key)

    def _open(self, path: Path) -> Entry | None:
        if not path.exists():
            return None
        try:
            entry, digest = self._read(path)
            if digest_of(entry.key) == path.name and digest == _digest(entry.rows, entry.notes):
                return entry
            reason = "altered"
        except Exception as error:  # damaged files raise errors of many unrelated kinds
            reason = repr(error)
        log.warning("%s is damaged (%s); its rows are computed again", path, reason)
        shutil.rmtree(path)
        return None

    def _read(self, path: Path) -> tuple[Entry, str]:
        """Read an entry, unchecked, and the digest that it is to have."""
        manifest = json.loads((path / MANIFEST).read_text())
        rows = np.load(path / ROWS, mmap_mode="c", allow_pickle=False)
        return Entry(manifest["key"], rows, manifest["notes"], computed=False), manifest["sha256"]

    def _compute(self, path: Path, key: Mapping[str, Any], source: RowSource) -> None:
        partial = path.with_suffix(PARTIAL)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            digest = _write(partial / ROWS, source)
            digest.update(_encode(source.notes))
            manifest = {"key": dict(key), "notes": source.notes, "sha256": digest.hexdigest()}
            (partial / MANIFEST).write_text(json.dumps(manifest, indent=1))
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


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
    # As the manifest gives it back, so that an entry's own key has the name that it was asked for by.
    plain = json.loads(json.dumps(key))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _write(path: Path, source: RowSource) -> hashlib._Hash:
    """Write the source's rows as they come, and digest them on the way."""
    rows: np.memmap[Any, Any] | None = None
    done = 0
    for chunk in source:
        if rows is None:
            rows = np.lib.format.open_memmap(path, mode="w+", dtype=chunk.dtype, shape=(len(source), *chunk.shape[1:]))
            digest = _begin_digest(rows)
        rows[done : done + len(chunk)] = chunk
        digest.update(np.ascontiguousarray(chunk).data)
        done += len(chunk)
    if rows is None or done != len(source):
        msg = f"the source promised {len(source)} rows and gave {done}"
        raise ValueError(msg)
    rows.flush()
    return digest


def _digest(rows: NDArray[Any], notes: dict[str, Any]) -> str:
    digest = _begin_digest(rows)
    digest.update(rows.data)
    digest.update(_encode(notes))
    return digest.hexdigest()


def _encode(notes: dict[str, Any]) -> bytes:
    return json.dumps(notes, sort_keys=True).encode()


def _begin_digest(rows: NDArray[Any]) -> hashlib._Hash:
    """Begin with what the file's header says, which could be altered as well."""
    return hashlib.sha256(f"{rows.dtype.str} {rows.shape} {rows.flags.c_contiguous}".encode())

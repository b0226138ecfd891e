"""A store of computed rows on disk, keyed by content."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from lightning.fabric.utilities.exceptions import MisconfigurationException
from numpy.typing import NDArray

log = logging.getLogger(__name__)

ROWS = "rows.npy"
MANIFEST = "manifest.json"


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
        rows: Memory-mapped array, `[rows, ...]`; what is written to it does not reach the disk.
        notes: What the source noted.
        computed: Whether this call computed it, rather than found it.
    """

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
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"data.cache_dir: {str(folder)!r} cannot be created ({error}); choose another folder"
            raise MisconfigurationException(msg) from error

    def get(self, key: Mapping[str, Any], source: RowSource) -> Entry:
        """Open an entry, after computing it where it is missing or damaged.

        Args:
            key: Everything that the rows depend on; JSON values.
            source: What computes the rows; not touched where the entry exists.

        Returns:
            The entry.
        """
        text = json.dumps(key, sort_keys=True)
        key = json.loads(text)  # as the manifest gives it back: tuples become lists
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = self.folder / digest
        lock = FileLock(self.folder / f"{digest}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.warning("another process is computing the same rows in %s; waiting for it", path)
            lock.acquire()
        try:
            entry = self._open(path, key)
            if entry is None:
                self._compute(path, key, source)
                rows, notes = self._read(path)[:2]
                entry = Entry(rows, notes, computed=True)
            return entry
        finally:
            lock.release()

    def _open(self, path: Path, key: Mapping[str, Any]) -> Entry | None:
        if not path.exists():
            return None
        try:
            rows, notes, manifest = self._read(path)
            intact = manifest["key"] == key and manifest["sha256"] == _digest(rows, notes)
        except Exception:  # damaged files raise errors of many unrelated kinds
            intact = False
        if intact:
            return Entry(rows, notes, computed=False)
        log.warning("%s is damaged; its rows are computed again", path)
        shutil.rmtree(path)
        return None

    def _read(self, path: Path) -> tuple[NDArray[Any], dict[str, Any], dict[str, Any]]:
        manifest = json.loads((path / MANIFEST).read_text())
        rows = np.load(path / ROWS, mmap_mode="c", allow_pickle=False)
        return rows, manifest["notes"], manifest

    def _compute(self, path: Path, key: Mapping[str, Any], source: RowSource) -> None:
        partial = path.with_suffix(".partial")
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

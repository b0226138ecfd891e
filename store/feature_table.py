"""Tables of features on disk: a folder of parts, each of some pictures, computed whole and checked when it is read.

A row is found by the digest of its picture, in whichever part it is. A part is a safetensors file with the digests and
the rows, named by the digest of its digests. Its header has the name of its table and the SHA-256 of the whole file.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.output.files import PARTIAL, remove_partial, replacing, write_together
from headstart.store.gathered_rows import GatheredRows
from headstart.store.json_digest import digest_of
from headstart.store.part_file import SUFFIX, DamagedError, Part, name_of, write_part

log = logging.getLogger(__name__)

# Folder of the cache with the tables, the file that says what a table is, and the number of its format.
TABLES, ABOUT, FORMAT = "features", "table.json", 1
# Ending of the file that is locked while a part is computed.
LOCK = ".lock"
# Bytes of rows up to which they are copied into memory.
COPIED = 2**30
# Digits of a SHA-256 in hexadecimal.
DIGEST_LENGTH = 64

Digests = NDArray[np.bytes_]
# Rows, their notes and their remarks, as in `StoredRows`.
Computed = tuple[NDArray[Any], Mapping[str, Any], Mapping[int, str]]


class StoreError(OSError):
    """A table cannot be read or written; the message says which, why, and what to do."""


@dataclass(frozen=True)
class StoredRows:
    """Rows of one table.

    Attributes:
        rows: `[pictures, ...]` in their order. Copied, or if they are larger than `COPIED` read when they are indexed.
        notes: Notes on all rows, such as the digest of the weights.
        remarks: Why a picture is unreadable and its row that of a black one, by index, ascending.
        computed: Number of rows that were computed and not read.
    """

    rows: NDArray[Any] | GatheredRows
    notes: dict[str, Any]
    remarks: dict[int, str]
    computed: int = 0


def pack(digests: Sequence[str]) -> Digests:
    """Return SHA-256 digests in hexadecimal as one array of 32 bytes each, `[digests]`."""
    if wrong := next((digest for digest in digests if len(digest) != DIGEST_LENGTH), None):
        raise ValueError(f"{wrong!r} is no SHA-256 in hexadecimal; the digest of a picture must be one")
    return np.frombuffer(bytes.fromhex("".join(digests)), "S32")


def in_hexadecimal(digests: Digests) -> list[str]:
    """Return digests of 32 bytes each in hexadecimal."""
    return [digest.hex() for digest in digests.view("V32").tolist()]


class FeatureTable:
    """A table, which many processes may read and fill.

    Args:
        folder: Folder of all tables, created when rows are written.
        key: Everything that all rows of the table depend on, JSON values; its digest names the table.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder, self.key = folder / digest_of(key), key
        # Parts never change, so that each is opened, and its checksum verified, once.
        self._parts: dict[str, Part] = {}
        self._verified: set[str] = set()
        self._is_swept = False

    def find(self, digests: Digests) -> Found:
        """Find rows. Damaged parts are removed with a warning, as if they had never been computed.

        Args:
            digests: Digests of the pictures, `[pictures]`; one may occur more than once.

        Raises:
            StoreError: The table cannot be read, is of another format, or holds rows of several networks.
        """
        with explain_os_errors(self.folder, "read"):
            self._require_format()
            while True:
                parts = self._open_parts()
                found = Found(parts, digests)
                intact = [self._verify(parts[owner]) for owner in found.used]
                if all(intact):
                    break
        if len({json.dumps(parts[owner].form, sort_keys=True) for owner in found.used}) > 1:
            raise StoreError(
                f"{str(self.folder)!r} cannot be used (its rows are of several networks or shapes); remove it with "
                f"headstart cache --remove={self.folder.name[:12]}"
            )
        return found

    def _require_format(self) -> None:
        about = self.folder / ABOUT
        with suppress(FileNotFoundError):
            content = about.read_bytes()
            # When it was last written is when the table was last used.
            with suppress(OSError):
                os.utime(about)
            with suppress(ValueError, TypeError, KeyError):
                if json.loads(content)["format"] == FORMAT:
                    return
            raise StoreError(
                f"{str(self.folder)!r} cannot be used ({ABOUT} is damaged, or not of format {FORMAT}); remove it"
            )

    def _open_parts(self) -> list[Part]:
        """Return all parts, by name; a file that is none is removed."""
        try:
            names = {path.name for path in self.folder.iterdir() if path.suffix == SUFFIX}
        except FileNotFoundError:
            names = set()
        for name in names - self._parts.keys():
            try:
                self._parts[name] = Part(self.folder / name)
            except DamagedError as error:
                self._drop(name, error)
            except FileNotFoundError:
                continue
        return [self._parts[name] for name in sorted(names & self._parts.keys())]

    def _verify(self, part: Part) -> bool:
        """Return whether a part is as it was written; it is removed otherwise."""
        name = part.path.name
        if name not in self._verified:
            try:
                part.verify()
            except DamagedError as error:
                self._drop(name, error)
                return False
            self._verified.add(name)
        return True

    def _drop(self, name: str, error: Exception) -> None:
        log.warning("%s is damaged (%s); its rows are computed again", self.folder / name, error)
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a part; a StoreError if it cannot be removed."""
        self._parts.pop(name, None)
        self._verified.discard(name)
        with explain_os_errors(self.folder / name, "removed"):
            (self.folder / name).unlink(missing_ok=True)

    def compute_once(self, digests: Digests, compute: Callable[[], Computed], wait: bool = True) -> int | None:
        """Compute a part and write it, unless it is there; no other process computes it meanwhile.

        Args:
            digests: Its pictures, each once.
            compute: Computes its rows.
            wait: Whether to wait for another process that is computing it.

        Returns:
            The number of rows that were computed; None where another process is computing them.

        Raises:
            StoreError: The table cannot be written.
        """
        path = self.folder / name_of(digests)
        lock = FileLock(path.with_suffix(LOCK))
        with explain_os_errors(self.folder, "written"):
            self._begin()
            with suppress(Timeout):
                lock.acquire(timeout=-1 if wait else 0)
        if not lock.is_locked:
            return None
        try:
            if path.exists():
                return 0
            self.write(digests, *compute())
            return len(digests)
        finally:
            # Removed while it is held: whoever waits for the removed file finds the part.
            with suppress(OSError):
                path.with_suffix(LOCK).unlink(missing_ok=True)
            lock.release()

    def _begin(self) -> None:
        """Make the folder, with the file that says what is in it; remove what killed writers left, once."""
        if not (self.folder / ABOUT).exists():
            text = json.dumps({"format": FORMAT, "rows": _in_words(self.key), "key": dict(self.key)}, indent=1) + "\n"
            write_together(self.folder, {ABOUT: partial(Path.write_text, data=text)})
        if self._is_swept:
            return
        self._is_swept = True
        for left in self.folder.glob(f"*{PARTIAL}"):
            remove_partial(left.with_suffix("").with_suffix(""))

    def write(self, digests: Digests, rows: NDArray[Any], notes: Mapping[str, Any], remarks: Mapping[int, str]) -> None:
        """Write a part: all of it, or nothing.

        Args:
            digests: Its pictures, each once.
            rows: Their rows, `[pictures, ...]`.
            notes: As in `StoredRows`.
            remarks: As in `StoredRows`.

        Raises:
            StoreError: It cannot be written.
        """
        with explain_os_errors(self.folder, "written"):
            self._begin()
            with replacing(self.folder / name_of(digests)) as path:
                write_part(path, self.folder.name, digests, rows, notes, remarks)


class Found:
    """Where requested rows are.

    Args:
        parts: The parts of the table.
        digests: Digests of the requested pictures.

    Attributes:
        missing: The first index of each digest without a row, ascending.
        used: The indices of the parts with requested rows.
    """

    def __init__(self, parts: Sequence[Part], digests: Digests) -> None:
        self._parts = parts
        names = np.concatenate([np.empty(0, "S32"), *(part.digests for part in parts)])
        order = np.argsort(names, kind="stable")
        # Searching for sorted names takes a twentieth of the time.
        by_name = np.argsort(digests, kind="stable")
        places = np.searchsorted(names[order], digests[by_name]).clip(max=max(0, len(names) - 1))
        at = np.full(len(digests), -1)
        if len(names):
            rows = order[places]
            at[by_name] = np.where(names[rows] == digests[by_name], rows, -1)

        starts = np.cumsum([0, *(len(part.digests) for part in parts)])
        self._owners = np.where(at < 0, -1, np.searchsorted(starts, at, side="right") - 1)
        self._positions = at - starts[self._owners]
        absent = np.flatnonzero(at < 0)
        self.missing = np.sort(absent[np.unique(digests[absent], return_index=True)[1]])
        self.used = [int(owner) for owner in np.unique(self._owners) if owner >= 0]

    def by_part(self) -> dict[str, NDArray[np.int64]]:
        """Return the indices of the requested rows that are stored, by the name of their part."""
        return {self._parts[owner].path.name: np.flatnonzero(self._owners == owner) for owner in self.used}

    def gather(self, copied: int = COPIED) -> StoredRows:
        """Return the rows, of which none is missing.

        Args:
            copied: Bytes up to which they are copied into memory.
        """
        parts = [self._parts[owner] for owner in self.used]
        owners = np.searchsorted(self.used, self._owners)
        rows = GatheredRows([part.rows for part in parts], owners, self._positions)
        remarks: dict[int, str] = {}
        for owner, part in enumerate(parts):
            if part.remarks:
                mine = np.flatnonzero(owners == owner)
                possible = ((int(index), part.remarks.get(int(self._positions[index]))) for index in mine)
                remarks |= {index: remark for index, remark in possible if remark is not None}
        return StoredRows(rows[:] if rows.nbytes <= copied else rows, parts[0].notes, dict(sorted(remarks.items())))


def _in_words(key: Mapping[str, Any]) -> str:
    """Return what the rows of a table are, for people who open it."""
    network = key.get("network")
    if network is None:
        return "prepared pictures"
    kind = f"activations before {key['boundary']}" if key.get("boundary") else "features"
    return f"{kind} of {network['model']} ({network['library']}), weights {json.dumps(network['weights'])}"


@contextmanager
def explain_os_errors(path: Path, verb: str) -> Iterator[None]:
    """Raise errors of the system as a StoreError that names the file or folder."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"{str(path)!r} cannot be {verb} ({error.strerror or error}); choose another folder"
        ) from error

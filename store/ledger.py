"""The ledger: traces on disk, found by what produced them."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.output.errors import reason_of
from headstart.store.json_digest import digest_of

FORMAT = 1
FILE = "traces.sqlite"
HOLDERS = "holders"
# What a document tells beside what its digest is of.
TOLD = "told"
# Another process's transaction takes milliseconds; this long only a disk that hangs lets it wait.
PATIENCE_SECONDS = 60
# SQLite takes this many values in one statement wherever it was built.
VALUES = 900

TABLES = """
CREATE TABLE IF NOT EXISTS origins (digest TEXT PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS traces (
    stream TEXT NOT NULL, method TEXT NOT NULL, ordering INTEGER NOT NULL,
    correct BLOB NOT NULL, diverged INTEGER, open INTEGER NOT NULL, written REAL NOT NULL,
    PRIMARY KEY (stream, method, ordering)
);
CREATE TABLE IF NOT EXISTS claims (
    stream TEXT NOT NULL, method TEXT NOT NULL, ordering INTEGER NOT NULL, holder TEXT NOT NULL,
    PRIMARY KEY (stream, method, ordering)
);
"""


class LedgerError(OSError):
    """The ledger cannot be created, read or written."""


@dataclass(frozen=True, order=True)
class TraceKey:
    """What a trace is found by.

    Attributes:
        stream: Digest of what was fed, from which start, on which kind of device.
        method: Digest of the method: its class, hyperparameters and source.
        ordering: Number of the ordering.
    """

    stream: str
    method: str
    ordering: int


@dataclass(frozen=True)
class Trace:
    """The trace of one method in one ordering, as far as it was measured.

    Attributes:
        correct: Correct predictions at each evaluation, int64 `[evaluations]`.
        diverged: The first evaluation at which a prediction was not finite, None where all were.
        open: Whether the run that measured it was cut off, or goes on.
    """

    correct: NDArray[np.int64]
    diverged: int | None = None
    open: bool = False


def parts_of(told: Mapping[str, Any]) -> int:
    """Give what an accuracy is a count of: validation photos, unless what is told of the stream says otherwise."""
    return int(told.get("parts", told["validation_size"]))


class Ledger:
    """Traces on disk in one SQLite file, to which any number of processes of one machine write.

    A transaction is on the disk or did not happen, so that a process that is killed loses what it had not yet written
    and nothing else. The file keeps SQLite's rollback journal: the faster write-ahead log needs shared memory, which
    network file systems do not give.

    A process claims the traces that it computes, so that each is computed once; the claims of a process that died are
    void. A process is alive while it holds the lock on its file in `holders`, which the system frees however it ends.

    Args:
        folder: Folder of the ledger, created where it is missing.

    Raises:
        LedgerError: It cannot be created or opened, or a later version of Headstart wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        with self._mistakes():
            (folder / HOLDERS).mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self._holder_file(self._holder))
            self._lock.acquire(timeout=0)
            # Transactions are begun by hand.
            self._base = sqlite3.connect(folder / FILE, timeout=PATIENCE_SECONDS, isolation_level=None)
            (found,) = self._base.execute("PRAGMA user_version").fetchone()
            if found > FORMAT:
                raise LedgerError(f"{str(folder)!r} has format {found}, this version of Headstart reads up to {FORMAT}")
            if found < FORMAT:
                self._base.executescript(f"{TABLES} PRAGMA user_version = {FORMAT};")

    def __enter__(self) -> Self:
        """Give the ledger, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return str(self.folder)

    def close(self) -> None:
        """Give up all claims; those of a process that is gone are void where the disk takes no more."""
        with suppress(LedgerError), self._mistakes(), self._transaction():
            self._base.execute("DELETE FROM claims WHERE holder = ?", [self._holder])
        self._base.close()
        self._lock.release()
        with suppress(OSError):
            self._holder_file(self._holder).unlink()

    def record(self, document: Mapping[str, Any], told: Mapping[str, Any] | None = None) -> str:
        """Keep what a digest stands for.

        Args:
            document: Everything that determines a stream or a method; JSON values.
            told: What else is to be known of it, without a part in the digest; that of the first record is kept.

        Returns:
            Its digest.
        """
        digest = digest_of(document)
        with self._mistakes(), self._transaction():
            row = (digest, json.dumps({**document, **({TOLD: told} if told else {})}, sort_keys=True))
            self._base.execute("INSERT OR IGNORE INTO origins VALUES (?, ?)", row)
        return digest

    def origin(self, digest: str) -> dict[str, Any]:
        """Give what a digest stands for.

        Args:
            digest: As `record` gave it.

        Raises:
            KeyError: It was never recorded.
        """
        with self._mistakes():
            found = self._base.execute("SELECT document FROM origins WHERE digest = ?", [digest]).fetchone()
        if found is None:
            raise KeyError(digest)
        document: dict[str, Any] = json.loads(found[0])
        return document

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Give traces as far as they are stored.

        Args:
            keys: Which; those that are not there are left out.
        """
        found: dict[TraceKey, Trace] = {}
        with self._mistakes():
            for stream, method, orderings in _by_method(keys):
                for part in _parts(orderings):
                    rows = self._base.execute(
                        "SELECT ordering, correct, diverged, open FROM traces WHERE stream = ? AND method = ? "
                        f"AND ordering IN ({', '.join('?' * len(part))})",
                        [stream, method, *part],
                    )
                    for ordering, correct, diverged, unfinished in rows:
                        counts = np.frombuffer(correct, dtype="<i4").astype(np.int64)
                        found[TraceKey(stream, method, ordering)] = Trace(counts, diverged, bool(unfinished))
        return found

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces in one transaction, in place of what is stored of them.

        Args:
            traces: The traces from their first evaluation on.

        Raises:
            LedgerError: The disk is full or fails; then none of them is stored.
        """
        now = time.time()
        rows = [
            (*astuple(key), trace.correct.astype("<i4").tobytes(), trace.diverged, trace.open, now)
            for key, trace in traces.items()
        ]
        with self._mistakes(), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Claim traces for this process, until it gives them up, closes the ledger or dies.

        Args:
            keys: Which.

        Returns:
            Those that other processes hold, with the name of the process (its machine and number); the rest is ours.
        """
        held: dict[TraceKey, str] = {}
        with self._mistakes(), self._transaction():
            wanted = list(keys)
            for holder in self._other_holders():
                if not self._is_alive(holder):
                    self._base.execute("DELETE FROM claims WHERE holder = ?", [holder])
            for key in wanted:
                place = astuple(key)
                self._base.execute("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", (*place, self._holder))
                (holder,) = self._base.execute(
                    "SELECT holder FROM claims WHERE stream = ? AND method = ? AND ordering = ?", place
                ).fetchone()
                if holder != self._holder:
                    held[key] = holder.rpartition("-")[0]
        return held

    def give_up(self, keys: Iterable[TraceKey]) -> None:
        """Let other processes claim traces.

        Args:
            keys: Which of those that this process holds.
        """
        places = [(*astuple(key), self._holder) for key in keys]
        with self._mistakes(), self._transaction():
            self._base.executemany(
                "DELETE FROM claims WHERE stream = ? AND method = ? AND ordering = ? AND holder = ?", places
            )

    def _other_holders(self) -> list[str]:
        rows = self._base.execute("SELECT DISTINCT holder FROM claims WHERE holder != ?", [self._holder])
        return [holder for (holder,) in rows]

    def _holder_file(self, holder: str) -> Path:
        return self.folder / HOLDERS / f"{holder}.lock"

    def _is_alive(self, holder: str) -> bool:
        """Say whether a process still runs; remove what it left where it does not."""
        file = self._holder_file(holder)
        if not file.exists():
            return False
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
        except Timeout:
            return True
        return False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            # On a full disk SQLite has undone it already.
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise

    @contextmanager
    def _mistakes(self) -> Iterator[None]:
        """Name the ledger in what SQLite and the system say."""
        try:
            yield
        except LedgerError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{str(self.folder)!r} cannot be used ({reason_of(error)})") from error


def _by_method(keys: Iterable[TraceKey]) -> Iterator[tuple[str, str, list[int]]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for key in keys:
        groups.setdefault((key.stream, key.method), []).append(key.ordering)
    for (stream, method), orderings in groups.items():
        yield stream, method, orderings


def _parts(orderings: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(orderings), VALUES):
        yield orderings[start : start + VALUES]

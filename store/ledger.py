"""The ledger: traces on disk, found by everything that determines them."""

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
from typing import Any, Literal, Protocol, Self

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.output.errors import reason_of
from headstart.store.json_digest import digest_of

FORMAT = 1
FILE = "traces.sqlite"
HOLDERS = "holders"
# The task of streams that name none.
COMPARISON = "comparison"
# Key of a document's values that have no part in its digest.
DESCRIPTION = "told"
# Transactions of other processes take milliseconds; only a hanging disk makes this process wait for so long.
PATIENCE_SECONDS = 60

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
IS_KEY = "stream = ? AND method = ? AND ordering = ?"


class LedgerError(OSError):
    """The ledger cannot be created, read or written."""


@dataclass(frozen=True, order=True)
class TraceKey:
    """The key of a trace.

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
        diverged: The first evaluation at which a prediction was not finite, None where all were finite.
        open: Whether the run that measured it was cut off, or is still running.
    """

    correct: NDArray[np.int64]
    diverged: int | None = None
    open: bool = False


def parts_of(description: Mapping[str, Any]) -> int:
    """Return the number of predictions that an accuracy counts: by default one for each validation photo."""
    return int(description.get("parts", description["validation_size"]))


class RunLedger(Protocol):
    """What a run needs of a ledger, which may be another machine's; see `Ledger` for the methods.

    Attributes:
        folder: Folder of this machine, for files that are kept beside a ledger.
    """

    folder: Path

    def __enter__(self) -> Self:
        """Return the ledger."""

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""

    @property
    def location(self) -> str:
        """Where it is, for messages."""

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Store a document, and return its digest."""

    def origin(self, digest: str) -> dict[str, Any]:
        """Return the document of a digest."""

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored."""

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces."""

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Claim traces, and return those that others hold."""

    def release(self, keys: Iterable[TraceKey]) -> None:
        """Release claimed traces."""


class LedgerFile:
    """The SQLite file of a ledger.

    Args:
        folder: Folder of the ledger.
        create: Whether to create the file where it is missing.

    Raises:
        LedgerError: The file cannot be opened, or a later version of Headstart wrote it.
    """

    def __init__(self, folder: Path, create: bool) -> None:
        self.folder = folder
        self._verb = "used" if create else "read"
        with self._errors():
            # A reader can write, too: SQLite first undoes what a process left that was killed while it wrote.
            address = f"{(folder / FILE).absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            # Without an isolation level, Python begins no transactions of its own.
            self._base = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
            (self._format,) = self._base.execute("PRAGMA user_version").fetchone()
        if self._format > FORMAT:
            raise LedgerError(
                f"{str(folder)!r} has format {self._format}, this version of Headstart reads up to {FORMAT}"
            )

    def __enter__(self) -> Self:
        """Return the ledger, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored.

        Args:
            keys: The traces; missing ones are left out.
        """
        statement = f"SELECT correct, diverged, open FROM traces WHERE {IS_KEY}"
        traces: dict[TraceKey, Trace] = {}
        with self._transaction("DEFERRED"):
            for key in keys:
                for correct, diverged, is_open in self._base.execute(statement, astuple(key)):
                    counts = np.frombuffer(correct, dtype="<i4").astype(np.int64)
                    traces[key] = Trace(counts, diverged, bool(is_open))
        return traces

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
        with self._errors():
            self._base.execute(f"BEGIN {kind}")
            try:
                yield
                self._base.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite has undone it already.
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of SQLite and the system as a LedgerError that names the ledger."""
        try:
            yield
        except LedgerError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{str(self.folder)!r} cannot be {self._verb} ({reason_of(error)})") from error


class Ledger(LedgerFile):
    """Traces on disk in one SQLite file, to which any number of processes of one machine write.

    A transaction is on the disk or did not happen, so a process that is killed loses only what it had not yet written.
    The file keeps SQLite's rollback journal: the faster write-ahead log needs shared memory, which network file systems
    lack.

    A process claims the traces that it computes, so that each is computed once; the claims of a dead process are
    void. A process is alive while it holds the lock on its file in `holders`, which the system frees however it ends.

    Args:
        folder: Folder of the ledger, created where it is missing.

    Raises:
        LedgerError: It cannot be created or opened, or a later version of Headstart wrote it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            (folder / HOLDERS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"{str(folder)!r} cannot be used ({reason_of(error)})") from error
        super().__init__(folder, create=True)

        self._holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._lock = FileLock(self._holder_file(self._holder))
        with self._errors():
            self._lock.acquire(timeout=0)
            if self._format < FORMAT:
                self._base.executescript(f"{TABLES} PRAGMA user_version = {FORMAT};")

    @property
    def location(self) -> str:
        """Where it is, for messages."""
        return str(self.folder)

    def close(self) -> None:
        """Release all claims and close the file."""
        # Where the disk takes no more, the claims become void with the lock.
        with suppress(LedgerError), self._transaction():
            self._base.execute("DELETE FROM claims WHERE holder = ?", [self._holder])
        super().close()
        self._lock.release()
        with suppress(OSError):
            self._holder_file(self._holder).unlink()

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Store a document by its digest.

        Args:
            document: Everything that determines a stream or a method; JSON values.
            description: Other values for readers, without a part in the digest; those of the first record are kept.

        Returns:
            The digest.
        """
        digest = digest_of(document)
        row = (digest, json.dumps({**document, **({DESCRIPTION: description} if description else {})}, sort_keys=True))
        with self._transaction():
            self._base.execute("INSERT OR IGNORE INTO origins VALUES (?, ?)", row)
        return digest

    def origin(self, digest: str) -> dict[str, Any]:
        """Return the document of a digest.

        Args:
            digest: As `record` returned it.

        Raises:
            KeyError: It was never recorded.
        """
        with self._errors():
            row = self._base.execute("SELECT document FROM origins WHERE digest = ?", [digest]).fetchone()
        if row is None:
            raise KeyError(digest)
        document: dict[str, Any] = json.loads(row[0])
        return document

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces in one transaction, in place of their earlier versions.

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
        with self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Claim traces for this process, until it releases them, closes the ledger or dies.

        Args:
            keys: The traces.

        Returns:
            Those that other processes hold, with the name of the process (its machine and number); the process holds
            the others now.
        """
        held: dict[TraceKey, str] = {}
        wanted = list(keys)
        with self._transaction():
            others = self._base.execute("SELECT DISTINCT holder FROM claims WHERE holder != ?", [self._holder])
            for (holder,) in others.fetchall():
                if not self._is_alive(holder):
                    self._base.execute("DELETE FROM claims WHERE holder = ?", [holder])

            for key in wanted:
                row = astuple(key)
                self._base.execute("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", (*row, self._holder))
                (holder,) = self._base.execute(f"SELECT holder FROM claims WHERE {IS_KEY}", row).fetchone()
                if holder != self._holder:
                    held[key] = holder.rpartition("-")[0]
        return held

    def release(self, keys: Iterable[TraceKey]) -> None:
        """Release traces, so that other processes can claim them.

        Args:
            keys: Traces that this process holds.
        """
        rows = [(*astuple(key), self._holder) for key in keys]
        with self._transaction():
            self._base.executemany(f"DELETE FROM claims WHERE {IS_KEY} AND holder = ?", rows)

    def _holder_file(self, holder: str) -> Path:
        return self.folder / HOLDERS / f"{holder}.lock"

    def _is_alive(self, holder: str) -> bool:
        """Whether a process still runs; the lock file of a dead one is removed."""
        file = self._holder_file(holder)
        if not file.exists():
            return False
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
        except Timeout:
            return True
        return False

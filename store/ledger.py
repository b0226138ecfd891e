"""The ledger: traces on disk, found by everything that determines them."""

import json
import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from headstart.output.errors import reason_of
from headstart.store.json_digest import digest_of
from headstart.store.ledger_file import DESCRIPTION, IS_KEY, LedgerError, LedgerFile, Trace, TraceKey, checksum

# Folder of the files that running processes lock.
HOLDERS = "holders"


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
        LedgerError: It cannot be created or opened, or has another format.
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

    def close(self) -> None:
        """Release all claims and close the file."""
        # If the disk is full, the claims become void with the lock.
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
        described = {DESCRIPTION: description} if description else {}
        row = digest, json.dumps({**document, **described}, sort_keys=True)
        with self._transaction():
            # A damaged one counts as missing.
            if digest not in self._documents("digest = ?", [digest]):
                self._base.execute("INSERT INTO documents VALUES (?, ?, ?)", (*row, checksum(*row)))
        return digest

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces in one transaction, in place of those of the same keys.

        Args:
            traces: The traces from their first evaluation on.

        Raises:
            LedgerError: The disk is full or fails; then none of them is stored.
        """
        rows = []
        for key, trace in traces.items():
            correct = trace.correct.astype("<i4").tobytes()
            rows.append((*astuple(key), correct, trace.diverged, int(trace.drew)))
        with self._transaction():
            self._base.executemany(
                "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(*row, checksum(*row)) for row in rows],
            )

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
        """Return whether a process still runs; the lock file of a dead one is removed."""
        file = self._holder_file(holder)
        if not file.exists():
            return False
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
        except Timeout:
            return True
        return False

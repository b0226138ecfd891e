"""Reading of a ledger that is not written to: one that others write to, or on a disk that cannot be written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.store.ledger import FILE, FORMAT, PATIENCE_SECONDS, LedgerError

COMPARISON = "comparison"


class LedgerReader:
    """Reads the finished traces of a ledger; those that are being measured, or were cut off, are only counted.

    Args:
        folder: Folder of the ledger.

    Raises:
        LedgerError: There is none, it cannot be read, or a later version of Headstart wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with self._mistakes():
            # Opened to be written to, where it can be: SQLite first undoes what a process left that was killed while it
            # wrote.
            address = f"{(folder / FILE).absolute().as_uri()}?mode=rw"
            self._base = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS)
            self._base.execute("PRAGMA query_only = ON")
            (found,) = self._base.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise LedgerError(f"{str(folder)!r} has format {found}, this version of Headstart reads up to {FORMAT}")

    def __enter__(self) -> Self:
        """Give the reader, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._base.close()

    def streams(self, task: str = COMPARISON) -> dict[str, dict[str, Any]]:
        """Give what was fed, by digest: every stream with a finished trace, as `Ledger.record` was given it.

        Args:
            task: Of which task; those of comparisons say none.
        """
        found = self._documents("SELECT DISTINCT stream FROM traces WHERE NOT open", [])
        return {digest: document for digest, document in found.items() if document.get("task", COMPARISON) == task}

    def methods(self, stream: str) -> dict[str, dict[str, Any]]:
        """Give the methods with a finished trace of a stream, by digest, as `Ledger.record` was given them.

        Args:
            stream: Digest of the stream.
        """
        return self._documents("SELECT DISTINCT method FROM traces WHERE stream = ? AND NOT open", [stream])

    def traces(self, stream: str) -> dict[tuple[str, int], NDArray[np.int64]]:
        """Give the counts of the finished traces of a stream, `[evaluations]`, by method and ordering, in this order.

        Args:
            stream: Digest of the stream.
        """
        with self._mistakes():
            rows = self._base.execute(
                "SELECT method, ordering, correct FROM traces WHERE stream = ? AND NOT open ORDER BY method, ordering",
                [stream],
            ).fetchall()
        return {(method, ordering): np.frombuffer(counts, "<i4").astype(np.int64) for method, ordering, counts in rows}

    def unfinished(self, stream: str) -> int:
        """Count the traces of a stream that are not finished.

        Args:
            stream: Digest of the stream.
        """
        with self._mistakes():
            (count,) = self._base.execute("SELECT count(*) FROM traces WHERE stream = ? AND open", [stream]).fetchone()
        return int(count)

    def _documents(self, digests: str, values: list[str]) -> dict[str, dict[str, Any]]:
        with self._mistakes():
            rows = self._base.execute(
                f"SELECT digest, document FROM origins WHERE digest IN ({digests}) ORDER BY rowid", values
            ).fetchall()
        return {digest: json.loads(document) for digest, document in rows}

    @contextmanager
    def _mistakes(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if "readonly" in str(error):
                raise LedgerError(
                    f"{str(self.folder)!r} holds what a process left that was killed while it wrote; only who may "
                    "write there can undo that, by reading it once, or copy the whole folder to where you may"
                ) from error
            raise LedgerError(f"{str(self.folder)!r} cannot be read ({error})") from error

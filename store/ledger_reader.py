"""Comparisons as the ledger holds them, without the runs that measured them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.store.ledger import COMPARISON, LedgerError, LedgerFile


class LedgerReader(LedgerFile):
    """Reads the finished traces of a ledger; those that are being measured, or were cut off, are only counted.

    Args:
        folder: Folder of the ledger.

    Raises:
        LedgerError: There is none, it cannot be read, or a later version of Headstart wrote it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            super().__init__(folder, create=False)
        except LedgerError as error:
            if "readonly" in str(error):
                raise LedgerError(
                    f"{str(folder)!r} holds what a process left that was killed while it wrote; only who may write "
                    "there can undo that, by reading it once, or copy the whole folder to where you may"
                ) from error
            raise
        self._base.execute("PRAGMA query_only = ON")

    def streams(self, task: str = COMPARISON) -> dict[str, dict[str, Any]]:
        """Return the documents of every stream with a finished trace, as `Ledger.record` stored them, by digest.

        Args:
            task: The task of the streams; those of comparisons name none.
        """
        documents = self._documents("SELECT DISTINCT stream FROM traces WHERE NOT open", [])
        return {digest: document for digest, document in documents.items() if document.get("task", COMPARISON) == task}

    def methods(self, stream: str) -> dict[str, dict[str, Any]]:
        """Return the documents of the methods with a finished trace of a stream, by digest.

        Args:
            stream: Digest of the stream.
        """
        return self._documents("SELECT DISTINCT method FROM traces WHERE stream = ? AND NOT open", [stream])

    def traces(self, stream: str) -> dict[tuple[str, int], NDArray[np.int64]]:
        """Return the counts of finished traces of a stream, `[evaluations]`, sorted by method and ordering.

        Args:
            stream: Digest of the stream.
        """
        rows = self._query(
            "SELECT method, ordering, correct FROM traces WHERE stream = ? AND NOT open ORDER BY method, ordering",
            [stream],
        )
        return {(method, ordering): np.frombuffer(counts, "<i4").astype(np.int64) for method, ordering, counts in rows}

    def unfinished(self, stream: str) -> int:
        """Count the traces of a stream that are not finished.

        Args:
            stream: Digest of the stream.
        """
        [(count,)] = self._query("SELECT count(*) FROM traces WHERE stream = ? AND open", [stream])
        return int(count)

    def _documents(self, digests: str, values: list[str]) -> dict[str, dict[str, Any]]:
        query = f"SELECT digest, document FROM origins WHERE digest IN ({digests}) ORDER BY rowid"
        return {digest: json.loads(document) for digest, document in self._query(query, values)}

    def _query(self, statement: str, values: list[str]) -> list[Any]:
        with self._errors():
            return self._base.execute(statement, values).fetchall()

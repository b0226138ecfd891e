"""Comparisons as the ledger holds them, without the runs that measured them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.store.class_counts import unpack
from headstart.store.ledger_checks import is_intact
from headstart.store.ledger_file import COMPARISON, RUN, LedgerError, LedgerFile


@dataclass
class StoredTraces:
    """The traces of a stream.

    Attributes:
        counts: Counts of correct predictions, `[evaluations]`, by method and ordering.
        diverged: How many of these have predictions that are not finite, by method.
        damaged: The methods and orderings of damaged traces, which are left out.
    """

    counts: dict[tuple[str, int], NDArray[np.int32]]
    diverged: Counter[str]
    damaged: list[tuple[str, int]]


class LedgerReader(LedgerFile):
    """Reads a ledger.

    Args:
        folder: Folder of the ledger.

    Raises:
        LedgerError: There is none, it cannot be read, or it has another format.
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
        """Return the documents of every stream with a trace, as `Ledger.record` stored them, by digest.

        Args:
            task: The task of the streams; those of comparisons name none.
        """
        # The first trace is enough; to look into all of them would read the whole file.
        first = "SELECT 1 FROM traces WHERE stream = digest"
        documents = self._documents(f"SELECT digest FROM origins WHERE EXISTS ({first})", [])
        return {digest: document for digest, document in documents.items() if document.get("task", COMPARISON) == task}

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs that measured traces, as far as they are recorded, in the order of their records.

        Each has `task`, `options` as a configuration has them, `stream`, `methods` by digest, and `orderings`.
        """
        documents = self._documents("SELECT digest FROM origins WHERE document LIKE ?", [f'{{"{RUN}": %'])
        return [document[RUN] for document in documents.values()]

    def methods(self, stream: str) -> dict[str, dict[str, Any]]:
        """Return the documents of the methods with a trace of a stream, by digest.

        Args:
            stream: Digest of the stream.
        """
        first = "SELECT 1 FROM traces WHERE stream = ?1 AND method = known.method"
        known = "(SELECT DISTINCT method FROM traces WHERE stream = ?1) AS known"
        return self._documents(f"SELECT method FROM {known} WHERE EXISTS ({first})", [stream])

    def traces(self, stream: str) -> StoredTraces:
        """Return the traces of a stream, sorted by method and ordering.

        Args:
            stream: Digest of the stream.
        """
        traces = StoredTraces({}, Counter(), [])
        with self._errors():
            for row in self._rows("WHERE stream = ? ORDER BY method, ordering", [stream]):
                _, method, ordering, content, diverged, _ = row
                if not is_intact(row):
                    traces.damaged.append((method, ordering))
                else:
                    traces.counts[method, ordering] = np.frombuffer(content, "<i4")
                    if diverged is not None:
                        traces.diverged[method] += 1
        return traces

    def class_counts(self, stream: str) -> Iterator[tuple[str, int, NDArray[np.unsignedinteger[Any]] | None]]:
        """Yield the counts of classes of a stream, see `Trace.of_class`, by method and ordering; None for damaged ones.

        Args:
            stream: Digest of the stream.
        """
        with self._errors():
            for row in self._class_rows("WHERE stream = ? ORDER BY method, ordering", [stream]):
                yield row[1], row[2], unpack(row[3]) if is_intact(row) else None

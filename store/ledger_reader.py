"""Traces as the ledger holds them, without the runs that measured them, and a ledger that is only read."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.output.printable import say
from headstart.store.json_digest import digest_of
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import COMPARISON, LedgerFile, Trace, TraceKey


@dataclass
class StoredTraces:
    """The traces of a stream.

    Attributes:
        methods: Documents of the methods with a trace, by digest.
        counts: Counts of correct predictions, `[evaluations]`, by method and ordering.
        diverged: How many of these have predictions that are not finite, by method.
        damaged: The methods and orderings of traces that are left out: they or the description of their method are
            damaged.
    """

    methods: dict[str, dict[str, Any]]
    counts: dict[tuple[str, int], NDArray[np.int64]]
    diverged: dict[str, int]
    damaged: list[tuple[str, int]]


class LedgerReader(LedgerFile):
    """Reads a ledger. For a run it is a ledger in which nothing is stored.

    Args:
        folder: Folder of the ledger; None for one without a trace.

    Raises:
        LedgerError: There is none, it cannot be read, is damaged in its structure, or has another format.
    """

    def __init__(self, folder: Path | None) -> None:
        super().__init__(folder, create=False)
        self._base.execute("PRAGMA query_only = ON")

    def streams(self, task: str = COMPARISON) -> dict[str, dict[str, Any]]:
        """Return the documents of every stream with a trace, as `Ledger.record` stored them, by digest.

        Args:
            task: The task of the streams; those of comparisons name none.
        """
        with self._errors():
            stored = [stream for (stream,) in self._base.execute("SELECT DISTINCT stream FROM traces")]
        documents = self._documents("digest IN (SELECT stream FROM traces)", [])
        if lost := [ascii(stream)[1:9] for stream in stored if stream not in documents]:
            say(
                f"WARNING: In the ledger {str(self.folder)!r} the description of {', '.join(lost)} is damaged; traces "
                "of this stream are left out.",
                sys.stderr,
            )
        return {digest: document for digest, document in documents.items() if document.get("task", COMPARISON) == task}

    def traces(self, stream: str) -> StoredTraces:
        """Return the traces of a stream, sorted by method and ordering.

        Args:
            stream: Digest of the stream.
        """
        methods = self._documents("digest IN (SELECT DISTINCT method FROM traces WHERE stream = ?)", [stream])
        traces = StoredTraces(methods, {}, {}, [])
        for key, trace in self._rows("stream = ?", [stream]):
            if trace is None or key.method not in methods:
                traces.damaged.append((key.method, key.ordering))
            else:
                traces.counts[key.method, key.ordering] = trace.correct
                traces.diverged.setdefault(key.method, 0)
                traces.diverged[key.method] += trace.diverged is not None
        return traces

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Return the digest of a document."""
        return digest_of(document)

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store nothing."""

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Return that others hold no trace."""
        return {}

    def release(self, keys: Iterable[TraceKey]) -> None:
        """Do nothing."""


# What a run needs of a ledger.
RunLedger = Ledger | LedgerReader

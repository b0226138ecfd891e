"""The SQLite file of a ledger, and the traces and documents that are read from it."""

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from headstart.output.printable import say
from headstart.store.class_counts import unpack
from headstart.store.json_digest import digest_of
from headstart.store.ledger_checks import CLASS_COUNTS, ORIGIN, TRACE, is_intact, reason_of_failure, require_intact

FORMAT = 3
FILE = "traces.sqlite"
HOLDERS = "holders"
# The task of streams that name none.
COMPARISON = "comparison"
# Key of a document's values that have no part in its digest.
DESCRIPTION = "told"
# The only key of a document that describes a run.
RUN = "run"
# Transactions of other processes take milliseconds; only a hanging disk makes this process wait for so long.
PATIENCE_SECONDS = 60

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
    """The trace of one method in one ordering, to its end.

    Attributes:
        correct: Correct predictions at each evaluation, int64 `[evaluations]`.
        diverged: The first evaluation at which a prediction was not finite, None where all were finite.
        of_class: Sizes of the classes, and below them the correct predictions of each at the first evaluations,
            unsigned `[1 + evaluations, classes]`; None where they were not counted, or not asked for. `[0, 0]` removes
            those that are stored.
    """

    correct: NDArray[np.int64]
    diverged: int | None = None
    of_class: NDArray[np.unsignedinteger[Any]] | None = None


class LedgerFile:
    """The SQLite file of a ledger.

    Args:
        folder: Folder of the ledger.
        create: Whether to create the file where it is missing.

    Raises:
        LedgerError: The file cannot be opened, or has another format.
    """

    def __init__(self, folder: Path, create: bool) -> None:
        self.folder = folder
        self._verb = "used" if create else "read"
        with self._errors():
            # A reader can write, too: SQLite first undoes what a process left that was killed while it wrote.
            address = f"{(folder / FILE).absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            # Without an isolation level, Python begins no transactions of its own.
            self._base = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
            # Damaged texts are noticed by their checksums.
            self._base.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            # Asked first: another process may create the tables, and the format with them, at any moment.
            is_new = create and not self._base.execute("SELECT 1 FROM sqlite_master").fetchone()
            (self._format,) = self._base.execute("PRAGMA user_version").fetchone()
            if self._format != FORMAT and not is_new:
                raise LedgerError(
                    f"{str(folder)!r} has format {self._format}, but this version of Headstart reads format {FORMAT}"
                )
            require_intact(self._base, self._mend if create else None)

    def __enter__(self) -> Self:
        """Return the ledger, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def read(self, keys: Iterable[TraceKey], of_class: bool = False) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored.

        Args:
            keys: The traces; missing ones are left out, and damaged ones with a warning.
            of_class: Whether to read the correct predictions of each class as well; damaged ones are left out with a
                warning.
        """
        traces: dict[TraceKey, Trace] = {}
        with self._transaction("DEFERRED"):
            for key in keys:
                for row in self._rows(f"WHERE {IS_KEY}", astuple(key)):
                    if is_intact(row):
                        counts = np.frombuffer(row[3], dtype="<i4").astype(np.int64)
                        traces[key] = Trace(counts, row[4], self._of_class(key) if of_class else None)
                    else:
                        self._warn_of_damage(key.method, key.ordering, "not used")
        return traces

    def _of_class(self, key: TraceKey) -> NDArray[np.unsignedinteger[Any]] | None:
        """Return the counts of classes of a trace; None where there are none, or damaged ones."""
        for row in self._class_rows(f"WHERE {IS_KEY}", astuple(key)):
            if is_intact(row):
                return unpack(row[3])
            self._warn_of_damage(key.method, key.ordering, "not used", "the count by class of ")
        return None

    def is_recorded(self, digest: str) -> bool:
        """Whether a document was recorded.

        Args:
            digest: Its digest.
        """
        with self._errors():
            return bool(self._base.execute("SELECT 1 FROM origins WHERE digest = ?", [digest]).fetchone())

    def _rows(self, where: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Return traces as they are stored, each with its checksum."""
        return self._base.execute(f"SELECT {TRACE}, checksum FROM traces {where}", values)

    def _class_rows(self, where: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        return self._base.execute(f"SELECT {CLASS_COUNTS}, checksum FROM class_counts {where}", values)

    def _mend(self) -> None:
        """Rebuild the indices; give documents their digests again, and remove damaged traces, which no key may find."""
        with self._transaction():
            self._base.execute("REINDEX")
            for row, *stored in self._base.execute(f"SELECT rowid, {ORIGIN}, checksum FROM origins").fetchall():
                digest = None if is_intact(stored) else _digest_of_text(stored[1])
                if digest and is_intact((digest, *stored[1:])):
                    self._base.execute("UPDATE OR REPLACE origins SET digest = ? WHERE rowid = ?", [digest, row])

            for row, *stored in self._base.execute(f"SELECT rowid, {TRACE}, checksum FROM traces").fetchall():
                if not is_intact(stored):
                    self._base.execute("DELETE FROM traces WHERE rowid = ?", [row])
                    self._warn_of_damage(stored[1], stored[2], "removed, to be measured again")

    def _warn_of_damage(self, method: str, ordering: int, consequence: str, part: str = "") -> None:
        trace = f"{part}the trace of {self._name(method)} in ordering {ordering}"
        say(f"WARNING: In the ledger {str(self.folder)!r} {trace} is damaged; it is {consequence}.", sys.stderr)

    def _name(self, method: str) -> str:
        """Return the name of a method, for messages; its digest where that is damaged."""
        # A damaged digest may be no text that SQLite takes, which is a ValueError.
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            for (document,) in self._base.execute("SELECT document FROM origins WHERE digest = ?", [method]):
                return str(json.loads(document)[DESCRIPTION]["name"])
        return f"the method {method[:8]}"

    def _documents(self, digests: str, values: Sequence[object]) -> dict[str, dict[str, Any]]:
        """Return the documents of digests that a query selects; a LedgerError where one is damaged."""
        query = f"SELECT {ORIGIN}, checksum FROM origins WHERE digest IN ({digests}) ORDER BY rowid"
        with self._errors():
            rows = self._base.execute(query, values).fetchall()
        damaged = [row[0] for row in rows if not is_intact(row)]
        if damaged:
            listed = ", ".join(str(digest)[:8] for digest in damaged)
            raise LedgerError(
                f"{str(self.folder)!r} is damaged in the descriptions of {listed}; "
                "headstart train mends that when it measures the same again, or restore the ledger from a copy"
            )
        return {digest: json.loads(document) for digest, document, _ in rows}

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
        # Messages of SQLite about damage may quote bytes that are no text.
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            reason = reason_of_failure(self.folder / FILE, error)
            raise LedgerError(f"{str(self.folder)!r} cannot be {self._verb} ({reason})") from error


def _digest_of_text(document: str) -> str | None:
    """Return the digest of a stored document; None where its text is damaged."""
    with suppress(ValueError, TypeError, AttributeError):
        return digest_of({key: value for key, value in json.loads(document).items() if key != DESCRIPTION})
    return None

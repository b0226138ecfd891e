"""The SQLite file of a ledger: one table of traces, each row with a checksum, and the documents that describe them."""

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from headstart.output.errors import reason_of
from headstart.output.printable import say

# The form of the file. Another number is an error.
FORMAT = 5
FILE = "traces.sqlite"
# The task of streams that name none.
COMPARISON = "comparison"
# Key of a document's values that have no part in its digest.
DESCRIPTION = "told"
# Transactions of other processes take milliseconds; only a hanging disk makes this process wait for so long.
PATIENCE_SECONDS = 60
# In pages of 4,096 bytes, SQLite's default, most traces would need one or two further pages of their own.
PAGE_SIZE = 32_768

# There is no index that could disagree with its table. Documents are few, and in the order in which they came.
TABLES = f"""
CREATE TABLE documents (digest TEXT, document TEXT, checksum INTEGER);
CREATE TABLE traces (
    stream TEXT, method TEXT, ordering INTEGER, correct BLOB, diverged INTEGER, drew INTEGER, checksum INTEGER,
    PRIMARY KEY (stream, method, ordering)
) WITHOUT ROWID;
CREATE TABLE claims (
    stream TEXT, method TEXT, ordering INTEGER, holder TEXT, PRIMARY KEY (stream, method, ordering)
) WITHOUT ROWID;
PRAGMA user_version = {FORMAT}
"""
IS_KEY = "stream = ? AND method = ? AND ordering = ?"


class LedgerError(OSError):
    """The ledger cannot be created, read or written."""


@dataclass(frozen=True, order=True)
class TraceKey:
    """The name of a trace.

    Attributes:
        stream: Digest of what was fed, from which start, on which kind of device.
        method: Digest of the method: its class, hyperparameters and code.
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
        drew: Whether the method drew from a global generator while several orderings ran side by side.
    """

    correct: NDArray[np.int64]
    diverged: int | None = None
    drew: bool = False


class LedgerFile:
    """The SQLite file of a ledger.

    Args:
        folder: Folder of the ledger; None for a ledger in memory, without a trace.
        create: Whether to create the file where it is missing.

    Raises:
        LedgerError: The file cannot be opened, is damaged in its structure, or has another format.
    """

    def __init__(self, folder: Path | None, create: bool) -> None:
        self.folder = folder or Path()
        self._verb = "used" if create else "read"
        # A reader can write, too: SQLite first undoes what a process left that was killed while it wrote.
        mode = "rwc" if create else "rw"
        address = ":memory:" if folder is None else f"{(folder / FILE).absolute().as_uri()}?mode={mode}"
        with self._errors():
            # Without an isolation level, Python begins no transactions of its own.
            self._base = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
            # Damaged texts are noticed by their checksums.
            self._base.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            if create or folder is None:
                self._create()
            self._require_intact()

    def _create(self) -> None:
        """Create the tables, unless another process was first."""
        self._base.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        with self._transaction():
            if not self._base.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in TABLES.split(";"):
                    self._base.execute(statement)

    def _require_intact(self) -> None:
        """Check the format, and the structure of the file: rows could be missing where that is damaged.

        It reads the whole file: 1 s for a million traces, 2.5 GB, that are in memory.
        """
        (number,) = self._base.execute("PRAGMA user_version").fetchone()
        if number != FORMAT:
            raise LedgerError(
                f"{str(self.folder)!r} has format {number}, but this version of Headstart reads format {FORMAT}"
            )
        (problem,) = self._base.execute("PRAGMA integrity_check(1)").fetchone()
        if problem != "ok":
            raise LedgerError(
                f"{str(self.folder)!r} is damaged ({problem.splitlines()[-1].strip()}); restore it from a copy, or "
                f"remove {FILE}, whose traces are then measured again"
            )

    def __enter__(self) -> Self:
        """Return the ledger, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def content(self) -> bytes:
        """Return the content of the file, as of now."""
        with self._errors():
            return self._base.serialize()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @property
    def location(self) -> str:
        """Where it is, for messages."""
        return str(self.folder)

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored.

        Args:
            keys: The traces; missing ones are left out, and damaged ones with a warning.
        """
        traces: dict[TraceKey, Trace] = {}
        with self._transaction("DEFERRED"):
            for key in keys:
                for own, trace in self._rows(IS_KEY, astuple(key)):
                    if trace is not None and own == key:
                        traces[key] = trace
                    else:
                        name = self._documents("digest = ?", [key.method]).get(key.method, {})
                        say(
                            f"WARNING: In the ledger {str(self.folder)!r} the trace of "
                            f"{name.get(DESCRIPTION, {}).get('name', key.method[:8])} in ordering {key.ordering} is "
                            "damaged; it is not used.",
                            sys.stderr,
                        )
        return traces

    def origin(self, digest: str) -> dict[str, Any]:
        """Return the document of a digest.

        Args:
            digest: As `Ledger.record` returned it.

        Raises:
            KeyError: It was never recorded, or is damaged.
        """
        return self._documents("digest = ?", [digest])[digest]

    def _rows(self, where: str, values: Sequence[object]) -> Iterator[tuple[TraceKey, Trace | None]]:
        """Yield stored traces; None for a damaged one, whose key may be damaged, too."""
        columns = "stream, method, ordering, correct, diverged, drew, checksum"
        with self._errors():
            for row in self._base.execute(f"SELECT {columns} FROM traces WHERE {where}", values):
                correct, diverged, drew = row[3:-1]
                trace = None
                if row[-1] == checksum(*row[:-1]):
                    trace = Trace(np.frombuffer(correct, "<i4").astype(np.int64), diverged, bool(drew))
                yield TraceKey(*row[:3]), trace

    def _documents(self, where: str, values: Sequence[object]) -> dict[str, dict[str, Any]]:
        """Return the documents that a query selects by their digests, without damaged ones."""
        with self._errors():
            query = f"SELECT digest, document, checksum FROM documents WHERE {where} ORDER BY rowid"
            rows = self._base.execute(query, values)
            return {row[0]: json.loads(row[1]) for row in rows if row[2] == checksum(*row[:2])}

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
            raise LedgerError(f"{str(self.folder)!r} cannot be {self._verb} ({reason_of(error)})") from error


def checksum(*values: object) -> int:
    """Return a checksum of the values of a row; a flipped bit, or up to 32 in a row, of bytes always change it.

    Args:
        values: The values: texts, bytes, whole numbers, or None.
    """
    # A flipped bit can make a text of bytes, and move the border between two values.
    sizes = [len(value) if isinstance(value, bytes) else value for value in values]
    content = b"".join([value for value in values if isinstance(value, bytes)])
    return zlib.crc32(content, zlib.crc32(ascii(sizes).encode()))

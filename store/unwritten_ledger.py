"""A ledger in which nothing is stored."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from headstart.store.json_digest import digest_of
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader


class UnwrittenLedger:
    """Does for a run what a ledger does, and stores nothing; see `Ledger` for the methods.

    Args:
        folder: Folder of a ledger whose traces are read; None, or one without a ledger, for none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path()
        self._is_read = folder is not None and (folder / FILE).is_file()

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Do nothing."""

    @property
    def location(self) -> str:
        """Where it is, for messages."""
        return str(self.folder)

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Return the digest of a document."""
        return digest_of(document)

    def origin(self, digest: str) -> dict[str, Any]:
        """Return no document."""
        return {}

    def is_recorded(self, digest: str) -> bool:
        """Whether a document was recorded, by its digest."""
        if not self._is_read:
            return False
        with LedgerReader(self.folder) as ledger:
            return ledger.is_recorded(digest)

    def read(self, keys: Iterable[TraceKey], of_class: bool = False) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored."""
        if not self._is_read:
            return {}
        with LedgerReader(self.folder) as ledger:
            return ledger.read(keys, of_class)

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store nothing."""

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Return that others hold no trace."""
        return {}

    def release(self, keys: Iterable[TraceKey]) -> None:
        """Do nothing."""

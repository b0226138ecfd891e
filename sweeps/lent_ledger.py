"""A ledger that another process keeps, on another machine perhaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.engines.task import Ask
from headstart.store.ledger import Ledger, Trace, TraceKey


@dataclass(frozen=True)
class Asked:
    """A call of a method of the ledger, which the process that keeps it is asked for."""

    method: str
    arguments: tuple[Any, ...]


class LentLedger(Ledger):
    """Asks the command that started a task for what the ledger holds, and gives it what the task measures.

    Args:
        folder: Folder of this machine, for what else is kept beside a ledger.
        ask: By which the command is asked.
    """

    def __init__(self, folder: Path, ask: Ask) -> None:
        self.folder = folder
        self._ask = ask

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return "that of the sweep"

    def close(self) -> None:
        """Give up all claims."""
        self._ask(Asked("close", ()))

    def record(self, document: Mapping[str, Any], told: Mapping[str, Any] | None = None) -> str:
        """Keep what a digest stands for; see `Ledger.record`."""
        digest: str = self._ask(Asked("record", (dict(document), told)))
        return digest

    def origin(self, digest: str) -> dict[str, Any]:
        """Give what a digest stands for; see `Ledger.origin`."""
        document: dict[str, Any] = self._ask(Asked("origin", (digest,)))
        return document

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Give traces as far as they are stored; see `Ledger.read`."""
        found: dict[TraceKey, Trace] = self._ask(Asked("read", (set(keys),)))
        return found

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces; see `Ledger.write`."""
        self._ask(Asked("write", (dict(traces),)))

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Claim traces for this task; see `Ledger.claim`."""
        held: dict[TraceKey, str] = self._ask(Asked("claim", (set(keys),)))
        return held

    def give_up(self, keys: Iterable[TraceKey]) -> None:
        """Let others claim traces; see `Ledger.give_up`."""
        self._ask(Asked("give_up", (set(keys),)))

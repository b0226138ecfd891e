"""What passes between a sweep's command and its tasks: the requested run, and calls of the ledger."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from headstart.store.ledger_file import Trace, TraceKey


@dataclass(frozen=True)
class RunRequest:
    """One run of a sweep.

    Attributes:
        options: Options of headstart train.
        folder: The run's folder on the command's disk.
        ledger: The ledger's folder on the command's disk; None where the task asks the command for the ledger.
        dashboard: The sweep's name, the run's parameters, and project and entity where the file names them.
        cpus: Processors that the run may use.
        known: Identity of the results in the folder, empty where there are none.
        mark: A file on the command's disk; where it does not exist, the run's files are sent to the command.
        token: The content of that file.
    """

    options: tuple[str, ...]
    folder: str
    ledger: str | None
    dashboard: Mapping[str, Any]
    cpus: int
    known: str
    mark: str
    token: str


class LedgerProxy:
    """A ledger that another process holds, perhaps on another machine: forwards every method of `RunLedger`.

    Args:
        folder: Folder of this machine, for files that are kept beside a ledger.
        call: Returns the result of a method, from its name and arguments, which can be pickled.
    """

    def __init__(self, folder: Path, call: Callable[..., Any]) -> None:
        self.folder = folder
        self._call = call

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release all claims."""
        self._call("close")

    @property
    def location(self) -> str:
        """Where it is, for messages."""
        return "that of the sweep"

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Store a document; see `Ledger.record`."""
        digest: str = self._call("record", dict(document), description)
        return digest

    def origin(self, digest: str) -> dict[str, Any]:
        """Return the document of a digest; see `Ledger.origin`."""
        document: dict[str, Any] = self._call("origin", digest)
        return document

    def read(self, keys: Iterable[TraceKey]) -> dict[TraceKey, Trace]:
        """Return traces as far as they are stored; see `Ledger.read`."""
        traces: dict[TraceKey, Trace] = self._call("read", set(keys))
        return traces

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces; see `Ledger.write`."""
        self._call("write", dict(traces))

    def claim(self, keys: Iterable[TraceKey]) -> dict[TraceKey, str]:
        """Claim traces for this task; see `Ledger.claim`."""
        held: dict[TraceKey, str] = self._call("claim", set(keys))
        return held

    def release(self, keys: Iterable[TraceKey]) -> None:
        """Release claimed traces; see `Ledger.release`."""
        self._call("release", set(keys))

"""What passes between a sweep's command and the tasks that are its runs, also to machines that see no disk of its."""

import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from headstart.store.ledger_file import Trace, TraceKey


@dataclass(frozen=True)
class SentFolder:
    """A folder that is sent to another machine, where its packed content arrives as bytes: few are in memory at once.

    Attributes:
        path: The folder, which may be missing.
    """

    path: Path

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        """Pack the folder when it is sent."""
        return bytes, (pack(self.path) if self.path.is_dir() else b"",)


@dataclass(frozen=True)
class RunRequest:
    """One run of a sweep.

    Attributes:
        options: Options of headstart train.
        folder: The run's folder on the command's disk.
        ledger: The ledger's folder there.
        dashboard: The sweep's name, the run's parameters, and project and entity where the file names them.
        files: Content of the folder for a machine of a cluster.
    """

    options: tuple[str, ...]
    folder: Path
    ledger: Path
    dashboard: Mapping[str, Any]
    files: SentFolder | bytes = b""


@dataclass(frozen=True)
class RunResult:
    """What became of a run.

    Attributes:
        complete: Whether it was done to its end.
        because: What cut it off.
        computed_traces: Traces that it measured; the others were in the ledger.
        files: Content of its folder where that is on another machine.
        documents: What it recorded in the ledger there, with descriptions.
        traces: Traces that it stored there.
    """

    complete: bool
    because: str
    computed_traces: int
    files: bytes = b""
    documents: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = field(default_factory=list)
    traces: dict[TraceKey, Trace] = field(default_factory=dict)


def pack(folder: Path) -> bytes:
    """Return the content of a folder as a compressed archive."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        # The dashboard links to a log of its own elsewhere, which would be missing where this is unpacked.
        archive.add(folder, ".", filter=lambda entry: None if entry.issym() else entry)
    return packed.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Replace a folder by the content of an archive, once that is complete.

    Args:
        archive: As `pack` returned it.
        folder: The folder, which may be missing.
    """
    # Commands that look for runs skip hidden folders. A killed command leaves this one.
    incoming = folder.with_name(f".{folder.name}")
    shutil.rmtree(incoming, ignore_errors=True)
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(incoming, filter="data")
    shutil.rmtree(folder, ignore_errors=True)
    incoming.rename(folder)

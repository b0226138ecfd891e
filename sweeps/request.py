"""What a sweep's command asks a task to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RunRequest:
    """One run of a sweep.

    Attributes:
        options: Options of headstart train.
        folder: The run's folder on the command's disk.
        ledger: The ledger's folder on the command's disk; None where the task asks the command for the ledger.
        dashboard: Group, project and entity in the dashboard, as far as the sweep names them.
        cpus: Processors that the run may use.
        known: Identity of the results in the folder, empty where there are none.
        mark: A file on the command's disk; where it does not exist, the run's files are sent to the command.
        token: The content of that file.
    """

    options: tuple[str, ...]
    folder: str
    ledger: str | None
    dashboard: Mapping[str, str]
    cpus: int
    known: str
    mark: str
    token: str

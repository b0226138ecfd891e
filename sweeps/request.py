"""What the command of a sweep and its tasks tell each other, besides calls of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """What a task is asked for.

    Attributes:
        options: Of headstart train.
        folder: The run's folder on the command's disk.
        dashboard: Group, project and entity in the dashboard, as far as the sweep says.
        cpus: Processors that the run may use.
        known: `Results.identity` of the files in the folder, empty where there are none.
        mark: A file on the command's disk; where there is no such, the run's files are sent to the command.
        token: What is in it.
    """

    options: tuple[str, ...]
    folder: str
    dashboard: Mapping[str, str]
    cpus: int
    known: str
    mark: str
    token: str


@dataclass(frozen=True)
class Files:
    """A run's folder as a compressed archive, from a machine that does not share the command's disk."""

    archive: bytes

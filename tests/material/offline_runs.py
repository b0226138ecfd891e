"""Runs that the dashboard's library has written without a server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def inspect(run: Path, *options: str) -> str:
    """Return what `wandb leet inspect` prints of a run."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options, str(run)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class OfflineRun:
    """The summary and the records of the only run below a folder."""

    def __init__(self, folder: Path) -> None:
        (self.run,) = (folder / "wandb").glob("offline-run-*")
        self.whole: dict[str, Any] = json.loads(inspect(self.run, "--summary"))
        self.records: list[dict[str, Any]] = [json.loads(line) for line in inspect(self.run).splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one type."""
        return [record[kind] for record in self.records if record["type"] == kind]

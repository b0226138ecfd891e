"""The table of a sweep's runs: which are complete, and why the others are not."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from headstart.output.files import write_texts
from headstart.sweeps.sweep_file import Run

TABLE, SCHEMA = "sweep.json", 1


@dataclass
class Row:
    """The state of one run.

    Attributes:
        name: The run.
        options: Options of headstart train.
        state: Its state.
        error: What went wrong, or what cut it off, one line.
        where: The machine that ran it last.
        seconds: Duration of its last attempt.
        computed_traces: Traces that its last attempt measured; the others were in the ledger.
    """

    name: str
    options: list[str]
    state: Literal["waiting", "complete", "incomplete", "failed"] = "waiting"
    error: str = ""
    where: str = ""
    seconds: float = 0.0
    computed_traces: int = 0

    def describe(self) -> str:
        """Return in one line how the run ended."""
        why = f" ({self.error})" if self.error else ""
        reused = "; all its traces were in the ledger" * (self.state == "complete" and not self.computed_traces)
        return f"{self.name}: {self.state}{why}, after {self.seconds:.1f} s{reused}"


class RunsTable:
    """The table rows of a sweep's runs.

    Args:
        folder: The sweep's folder.
        runs: Its runs.

    Attributes:
        rows: The rows, by name.
    """

    def __init__(self, folder: Path, runs: list[Run]) -> None:
        self.folder = folder
        self.rows = {run.name: Row(run.name, list(run.options)) for run in runs}

    def write(self) -> None:
        """Replace the table's file."""
        document = {"schema": SCHEMA, "runs": [asdict(row) for row in self.rows.values()]}
        write_texts(self.folder, {TABLE: json.dumps(document, indent=1)})

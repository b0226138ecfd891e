"""The table of a sweep: the state of every run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from headstart.output.errors import UserError, reason_of
from headstart.output.files import write_texts
from headstart.sweeps.sweep_file import Run

FILE = "sweep.json"
SCHEMA = 1

State = Literal["waiting", "running", "complete", "incomplete", "failed", "lost", "memory", "stopped"]


@dataclass
class Row:
    """The state of one run.

    Attributes:
        name: The run.
        options: Options of headstart train.
        state: Its state.
        error: What went wrong, one line.
        where: The machine that ran it last.
        attempts: How often it was started.
        seconds: Duration of its last attempt.
        computed_traces: Traces that its last attempt measured; the others were in the ledger.
        identity: Digest of what decided its results, empty if it has no complete ones.
    """

    name: str
    options: list[str]
    state: State = "waiting"
    error: str = ""
    where: str = ""
    attempts: int = 0
    seconds: float = 0.0
    computed_traces: int = 0
    identity: str = ""


class RunsTable:
    """The table rows of a sweep's runs, by name.

    Args:
        folder: The sweep's folder.
        runs: Its runs; the rows of the folder's table are kept, also those of other runs.

    Attributes:
        rows: The rows of the runs.

    Raises:
        UserError: The folder's table cannot be read.
    """

    def __init__(self, folder: Path, runs: list[Run]) -> None:
        self.folder = folder
        before = _read(folder / FILE)
        self.rows = {run.name: before.get(run.name, Row(run.name, list(run.options))) for run in runs}
        self.others = [row for name, row in before.items() if name not in self.rows]
        for row in self.rows.values():
            # A killed command leaves this state.
            row.state = "waiting" if row.state == "running" else row.state

    def known(self, name: str) -> str:
        """Return the identity of a run's results, empty if it has no complete ones.

        Args:
            name: The run.
        """
        return self.rows[name].identity if (self.folder / name / "results.json").is_file() else ""

    def write(self) -> None:
        """Replace the table's file."""
        document = {"schema": SCHEMA, "runs": [asdict(row) for row in (*self.rows.values(), *self.others)]}
        write_texts(self.folder, {FILE: json.dumps(document, indent=1)})


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text())
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        names = {field.name for field in fields(Row)}
        rows = [Row(**{key: value for key, value in row.items() if key in names}) for row in document["runs"]]
        return {row.name: row for row in rows}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"output: {str(path)!r} is no table of a sweep ({reason_of(error)}); choose another folder"
        ) from error

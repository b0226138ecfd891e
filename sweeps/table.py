"""The table of a sweep's runs: which are complete, and why the others are not."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from headstart.output.errors import UserError, reason_of
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
        before = _read(folder / TABLE)
        self.rows = {run.name: before.get(run.name, Row(run.name, list(run.options))) for run in runs}
        self.others = [row for name, row in before.items() if name not in self.rows]

    def write(self) -> None:
        """Replace the table's file."""
        document = {"schema": SCHEMA, "runs": [asdict(row) for row in (*self.rows.values(), *self.others)]}
        write_texts(self.folder, {TABLE: json.dumps(document, indent=1)})


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text())
        if document["schema"] != SCHEMA:
            raise ValueError(f"it has schema {document['schema']}, but this version of Headstart reads schema {SCHEMA}")
        names = {field.name for field in fields(Row)}
        rows = [Row(**{key: value for key, value in row.items() if key in names}) for row in document["runs"]]
        return {row.name: row for row in rows}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"output: {str(path)!r} is not a table of a sweep ({reason_of(error)}); choose another folder"
        ) from error

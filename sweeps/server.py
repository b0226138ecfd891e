"""The command's side of a sweep: it keeps the table of runs, and serves the ledger to those on other machines."""

import json
import shlex
import shutil
import tarfile
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from headstart.engines.display import Display
from headstart.engines.task import Outcome, Task, TaskMessage
from headstart.output.errors import UserError, reason_of
from headstart.output.files import write_texts
from headstart.output.printable import say
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, LedgerError
from headstart.store.ledger_reader import LedgerReader
from headstart.sweeps.sweep_file import Run

TABLE, SCHEMA = "sweep.json", 1
LOGS = "logs"
# Received folders lie here until they are complete; commands that look for runs skip it.
INCOMING = ".incoming"


@dataclass
class Row:
    """The state of one run.

    Attributes:
        name: The run.
        options: Options of headstart train.
        state: Its state.
        error: What went wrong, one line; for how long a running run has been silent.
        where: The machine that ran it last.
        attempts: How often it was started.
        seconds: Duration of its last attempt.
        computed_traces: Traces that its last attempt measured; the others were in the ledger.
        identity: Digest of what decided its results, empty if it has no complete ones.
    """

    name: str
    options: list[str]
    state: Literal["waiting", "running", "complete", "incomplete", "failed", "lost", "memory", "stopped"] = "waiting"
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
        before = _read(folder / TABLE)
        self.rows = {run.name: before.get(run.name, Row(run.name, list(run.options))) for run in runs}
        self.others = [row for name, row in before.items() if name not in self.rows]
        for row in self.rows.values():
            # A killed command leaves runs in this state.
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


class SweepServer:
    """Listens to the runs of a sweep: it keeps their table and logs, and serves the ledger and the disk.

    Args:
        folder: The sweep's folder.
        ledger: Folder of the ledger.
        table: The table of the runs.
        display: Where their progress is shown.
    """

    def __init__(self, folder: Path, ledger: Path, table: RunsTable, display: Display) -> None:
        self.folder, self.ledger, self.table, self.display = folder, ledger, table, display
        (folder / LOGS).mkdir(exist_ok=True)
        # A killed command leaves this folder.
        shutil.rmtree(folder / INCOMING, ignore_errors=True)
        # Each run claims traces by a ledger of its own.
        self._ledgers: dict[str, Ledger] = {}
        self._logged: set[str] = set()
        self._cannot_log = False

    def receive(self, task: Task, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        """Process a message of a run.

        Args:
            task: The run.
            message: Its message.

        Returns:
            The result of a call of the ledger, a LedgerError for the run to raise; None for other messages.

        Raises:
            UserError: The table cannot be written.
        """
        self.display.receive(task, message)
        match message:
            case TaskMessage("ledger", (method, *arguments)):
                return self._call_ledger(task.name, method, arguments)
            case TaskMessage("folder", archive):
                self._unpack(self.folder / task.name, archive)
            case TaskMessage("printed", line):
                self._log(task.name, line)
            case TaskMessage("started", where):
                row = self.table.rows[task.name]
                row.state, row.where, row.error, row.attempts = "running", where, "", row.attempts + 1
                row.computed_traces = 0
                self.table.write()
        return None

    def _call_ledger(self, name: str, method: str, arguments: list[Any]) -> Any:  # noqa: ANN401 - as the method demands
        try:
            if name not in self._ledgers:
                self._ledgers[name] = Ledger(self.ledger)
            return getattr(self._ledgers[name], method)(*arguments)
        except LedgerError as error:
            return error

    def waited(self) -> None:
        """Write into the table which runs have become silent."""
        self.display.waited()
        for row in self.table.rows.values():
            if row.state == "running" and (silence := self.display.silence(row.name)) != row.error:
                row.error = silence
                self.table.write()

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Write into the table how a run ended.

        Args:
            task: The run.
            outcome: How it ended.
            again: Whether it is started again.
        """
        if task.name in self._ledgers:
            self._ledgers.pop(task.name).close()

        row = self.table.rows[task.name]
        row.where, row.error = outcome.where or row.where, outcome.error
        row.state = "waiting" if again else outcome.kind if outcome.kind != "done" else "complete"
        if outcome.kind == "done":
            row.identity, row.computed_traces = outcome.result["identity"], outcome.result["computed_traces"]
            if not outcome.result["complete"]:
                row.state, row.error = "incomplete", outcome.result["because"]

        shown = outcome.kind if again else row.state
        row.seconds = round(self.display.show_end(task.name, shown, row.error, again), 1)
        self.table.write()

    def close(self) -> None:
        """Release the claims of runs whose end was not received."""
        for ledger in self._ledgers.values():
            ledger.close()

    def _log(self, name: str, line: str) -> None:
        """Log a line; warn once if that fails, which is no error of the run."""
        path, mode = self.folder / LOGS / f"{name}.log", "a" if name in self._logged else "w"
        try:
            with path.open(mode, encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"{line}\n")
            self._logged.add(name)
        except OSError as error:
            if not self._cannot_log:
                reason = reason_of(error)
                self.display.print(f"warning: {str(path)!r} cannot be written ({reason}); the runs continue without")
            self._cannot_log = True

    def _unpack(self, folder: Path, archive: bytes) -> None:
        """Replace a run's folder, once the new one is complete."""
        incoming = self.folder / INCOMING
        new, old = (incoming / folder.name / age for age in ("new", "old"))
        try:
            with tarfile.open(fileobj=BytesIO(archive)) as packed:
                packed.extractall(new, filter="data")
            with suppress(FileNotFoundError):
                folder.replace(old)
            new.replace(folder)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


class DryRunServer:
    """Listens to the tasks of a dry run, and prints their results.

    Args:
        ledger: Folder of the ledger, which may be missing.
    """

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger

    def receive(self, task: Task, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        """Return the result of a call of the ledger; other messages are ignored.

        Args:
            task: The run.
            message: Its message.
        """
        if message.kind != "ledger":
            return None
        method, *arguments = message.content
        try:
            with LedgerReader(self.ledger if (self.ledger / FILE).is_file() else None) as ledger:
                return getattr(ledger, method)(*arguments)
        except LedgerError as error:
            return error

    def waited(self) -> None:
        """Do nothing: nothing is shown of runs that are looked up."""

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Print what a run lacks.

        Args:
            task: The run.
            outcome: How its task ended.
            again: Whether it is started again.
        """
        if not again:
            say(f"{task.name}: {outcome.result if outcome.kind == 'done' else outcome.error or outcome.kind}")
            say(f"  headstart train {shlex.join(task.argument.options)}")

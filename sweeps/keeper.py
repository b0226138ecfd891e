"""What the command of a sweep keeps, or only looks at: the ledger, the table, the logs and the runs' folders."""

from __future__ import annotations

import shlex
import shutil
import tarfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from headstart.engines.display import Display
from headstart.engines.task import Outcome, Said, Started, Task
from headstart.output.errors import reason_of
from headstart.output.printable import say
from headstart.store.json_digest import digest_of
from headstart.store.ledger import FILE, Ledger
from headstart.sweeps.lent_ledger import Asked
from headstart.sweeps.request import Files
from headstart.sweeps.runs_table import RunsTable

LOGS = "logs"
# Where folders that are sent lie until they are complete; what looks for runs passes over it.
INCOMING = ".incoming"


class Keeper:
    """Answers the runs of a sweep; it alone writes to the ledger.

    Args:
        folder: The sweep's folder.
        ledger: Folder of the ledger.
        table: The table of the runs.
        display: Where it is shown how they go.
    """

    def __init__(self, folder: Path, ledger: Path, table: RunsTable, display: Display) -> None:
        self.folder, self.ledger, self.table, self.display = folder, ledger, table, display
        (folder / LOGS).mkdir(exist_ok=True)
        # Of a command that was killed.
        shutil.rmtree(folder / INCOMING, ignore_errors=True)
        self._lent: dict[str, Ledger] = {}
        self._logged: set[str] = set()
        self._cannot_log = False

    def asked(self, task: Task, message: Any) -> Any:  # noqa: ANN401 - whatever a task asks
        """Answer a run.

        Args:
            task: The run.
            message: What it asks or says.

        Raises:
            LedgerError: The ledger cannot be used.
        """
        match message:
            case Asked(method, arguments):
                return getattr(self._ledger(task.name), method)(*arguments)
            case Said(line):
                self._log(task.name, line)
                self.display.said(task.name, line)
            case Started(where):
                row = self.table.rows[task.name]
                row.state, row.where, row.error, row.attempts = "running", where, "", row.attempts + 1
                row.computed_traces = 0
                self.table.write()
                self.display.started(task.name, where)
            case Files(archive):
                self._unpack(self.folder / task.name, archive)
        return None

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Note how a run ended.

        Args:
            task: The run.
            outcome: How it ended.
            again: Whether it is begun again.
        """
        self._take_back(task.name)
        row = self.table.rows[task.name]
        row.where, row.error = outcome.where or row.where, outcome.error
        row.state = "waiting" if again else outcome.kind if outcome.kind != "done" else "complete"
        if outcome.kind == "done":
            row.identity, row.computed_traces = outcome.result["identity"], outcome.result["computed_traces"]
            if not outcome.result["complete"]:
                row.state, row.error = "incomplete", outcome.result["because"]
        shown = outcome.kind if again else row.state
        row.seconds = round(self.display.ended(task.name, shown, row.error, again), 1)
        self.table.write()

    def close(self) -> None:
        """Give up what runs have claimed that were not heard to their end."""
        for name in list(self._lent):
            self._take_back(name)

    def _log(self, name: str, line: str) -> None:
        """Log a line; that it cannot be, which is no mistake of the run, is told once."""
        path, mode = self.folder / LOGS / f"{name}.log", "a" if name in self._logged else "w"
        try:
            with path.open(mode, encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"{line}\n")
            self._logged.add(name)
        except OSError as error:
            if not self._cannot_log:
                self.display.tell(
                    f"warning: {str(path)!r} cannot be written ({reason_of(error)}); the runs go on without"
                )
            self._cannot_log = True

    def _ledger(self, name: str) -> Ledger:
        """Give a run its own hold on the ledger, so that runs leave each other's traces alone."""
        if name not in self._lent:
            self._lent[name] = Ledger(self.ledger)
        return self._lent[name]

    def _take_back(self, name: str) -> None:
        if name in self._lent:
            self._lent.pop(name).close()

    def _unpack(self, folder: Path, archive: bytes) -> None:
        """Put a run's folder in place of the one before, which is there until the new one is."""
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


class Looker:
    """Answers runs that are only looked at: it prints what they say, and keeps nothing.

    Args:
        ledger: Folder of the ledger, which may be missing.

    Attributes:
        mistaken: Number of runs that cannot be looked at.
    """

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.mistaken = 0

    def asked(self, task: Task, message: Any) -> Any:  # noqa: ANN401 - whatever a task asks
        """Answer a run.

        Args:
            task: The run.
            message: What it asks or says.
        """
        match message:
            case Asked("record", (document, _)):
                return digest_of(document)
            case Asked("read", (keys,)) if (self.ledger / FILE).is_file():
                with Ledger(self.ledger) as ledger:
                    return ledger.read(keys)
            case Asked("read", _):
                return {}
        return None

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Print what is known of a run.

        Args:
            task: The run.
            outcome: How it ended.
            again: Whether it is begun again.
        """
        if not again:
            self.mistaken += outcome.kind != "done"
            say(f"{task.name}: {outcome.result if outcome.kind == 'done' else outcome.error or outcome.kind}")
            say(f"  headstart train {shlex.join(task.argument.options)}")

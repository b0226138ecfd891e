"""Sweeps of headstart train, on one machine or a cluster."""

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import NonNegativeFloat, PositiveInt

from headstart.cli.task import find_task
from headstart.engines.options import EngineOptions, Needs
from headstart.engines.tasks import Outcome, Task, run_tasks
from headstart.output.errors import INCOMPLETE, UserError, explain_write_errors
from headstart.output.files import alone_in, output_folder, write_texts
from headstart.output.printable import say
from headstart.output.shipped_files import find_file
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import LedgerError
from headstart.sweeps.request import RunRequest, RunResult, SentFolder, unpack
from headstart.sweeps.sweep_file import Run, Sweep, read_sweep
from headstart.sweeps.thresholds import Configs, add_thresholds, choose_threshold, reference_runs

# The table of the runs, the number of its form, and the folder of their logs.
TABLE, SCHEMA, LOGS = "sweep.json", 1, "logs"
# Reference runs lie here; commands that look for runs skip hidden folders.
THRESHOLDS = ".thresholds"
# The commands that show runs of a task side by side.
COMPARED_BY = {"comparison": "leaderboard {}", "target_accuracy": "performances {}/'*'"}


@dataclass
class Row:
    """The state of one run, in the table.

    Attributes:
        name: The run.
        options: Options of headstart train.
        state: Its state.
        error: What went wrong, or what cut it off, one line.
        seconds: Duration of its last attempt.
        computed_traces: Traces that its last attempt measured; the others were in the ledger.
    """

    name: str
    options: list[str]
    state: Literal["waiting", "complete", "incomplete", "failed"] = "waiting"
    error: str = ""
    seconds: float = 0.0
    computed_traces: int = 0

    def describe(self) -> str:
        """Return in one line how the run ended."""
        why = f" ({self.error})" if self.error else ""
        reused = "; all its traces were in the ledger" * (self.state == "complete" and not self.computed_traces)
        return f"{self.name}: {self.state}{why}, after {self.seconds:.1f} s{reused}"


def sweep(
    file: str,
    dry_run: bool = False,
    output: str | None = None,
    ledger: str | None = None,
    cpus: PositiveInt = 1,
    gpus: NonNegativeFloat = 0.0,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Run the runs of a sweep file, here or on a cluster. Traces in the ledger are not measured again.

    Args:
        file: Sweep file in the format of Weights & Biases, as in configs/sweep. If it has the key `reference`, a list
            of options, targets without a threshold are run with these options first, which sets their thresholds.
        dry_run: Print all runs and their commands, without running them.
        output: Folder of the runs, their logs and their table. The default is runs/sweep- and the file's name.
        ledger: Folder of the ledger of traces. The default is the environment variable HEADSTART_LEDGER, or else
            `ledger` beside the output folder.
        cpus: Processors of each run. Another number can round differently.
        gpus: GPUs of each run on a Ray cluster. With 0.5, two runs share a GPU.
        overwrite: Replace results of other code, photos, weights or versions.
        **options: Options of `EngineOptions`.
    """
    engines = EngineOptions(**options)
    if gpus > 1 and gpus % 1:
        raise UserError(f"gpus: {gpus:g} is neither a fraction of one GPU nor a whole number; give 0.5, 1 or 2")
    content = read_sweep(find_file(file))

    folder = output_folder("output", output or f"runs/sweep-{Path(file).stem}")
    ledger_folder = Path(ledger or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger").expanduser()
    command = _Command(engines, Needs(cpus, gpus), ledger_folder.absolute(), overwrite)
    references = reference_runs(content) if content.reference else {}
    if dry_run:
        if references:
            say(f"The thresholds of {len(references)} targets follow from the first runs.")
        for run in (*references.values(), *content.runs):
            say(run.name)
            say(f"  headstart train {shlex.join(run.options)}")
        return

    if references:
        content = _with_thresholds(content, references, folder / THRESHOLDS, command)
    command.run(content, folder)


def _with_thresholds(content: Sweep, references: dict[Configs, Run], folder: Path, command: "_Command") -> Sweep:
    """Run the reference runs of a sweep, and return it with the thresholds that follow."""
    try:
        command.run(replace(content, runs=list(references.values())), folder)
    except SystemExit:
        say("The other runs start when all reference runs are complete, since their thresholds follow from these.")
        raise
    thresholds = {configs: choose_threshold(folder / run.name) for configs, run in references.items()}
    for configs, threshold in thresholds.items():
        say(f"{references[configs].name}: the threshold is {threshold:.0%}")
    return add_thresholds(content, thresholds)


@dataclass(frozen=True)
class _Command:
    """How the runs of a sweep are carried out.

    Attributes:
        engines: Where they run.
        needs: What each of them needs.
        ledger: Folder of the ledger.
        overwrite: Whether results are replaced that other code, photos, weights or versions gave.
    """

    engines: EngineOptions
    needs: Needs
    ledger: Path
    overwrite: bool

    def run(self, content: Sweep, folder: Path) -> None:
        """Measure what the ledger lacks of the runs; exit where one is not complete."""
        # Before the first run, the ledger has to be usable.
        with _opened(self.ledger) as ledger:
            shared = ledger.content() if self.engines.ray is not None else None
        with alone_in("output", folder):
            rows = {run.name: Row(run.name, list(run.options)) for run in content.runs}
            tasks = self._tasks(content, folder)
            if self.engines.ray is not None:
                tasks = [_sent(task) for task in tasks]
            how: dict[str, Any] = {"title": content.name, "logs": folder / LOGS, "needs": self.needs, "shared": shared}

            _write(folder, rows.values())
            with closing(run_tasks(tasks, self.engines, **how)) as outcomes:
                for done, outcome in enumerate(outcomes, 1):
                    row = rows[outcome.task.name]
                    self._enter(row, outcome)
                    _write(folder, rows.values())
                    say(f"[{done}/{len(tasks)}] {row.describe()}", sys.stderr)
        _conclude([*rows.values()], folder)

    def _tasks(self, content: Sweep, folder: Path) -> list[Task]:
        added = ["--results.overwrite=true"] * self.overwrite
        tasks = []
        for run in content.runs:
            dashboard = {**content.dashboard, "parameters": dict(run.parameters)}
            request = RunRequest((*run.options, *added), (folder / run.name).absolute(), self.ledger, dashboard)
            tasks.append(Task(run.name, "headstart.sweeps.run:measure", request))
        return tasks

    def _enter(self, row: Row, outcome: Outcome) -> None:
        """Enter the end of a run into its row; store what comes from another machine."""
        row.seconds = round(outcome.seconds, 1)
        row.state, row.error, row.computed_traces = "failed", outcome.error, 0
        if not outcome.error:
            result: RunResult = outcome.value
            if result.files:
                folder = outcome.task.argument.folder
                with explain_write_errors(f"output: {str(folder)!r}", "make room there, and give the same command"):
                    unpack(result.files, folder)
                with _opened(self.ledger) as ledger:
                    for document, description in result.documents:
                        ledger.record(document, description)
                    ledger.write(result.traces)
            row.state = "complete" if result.complete else "incomplete"
            row.error, row.computed_traces = result.because * (not result.complete), result.computed_traces


@contextmanager
def _opened(folder: Path) -> Iterator[Ledger]:
    """Open the ledger; its errors are the user's."""
    try:
        with Ledger(folder) as ledger:
            yield ledger
    except LedgerError as error:
        raise UserError(f"ledger: {error}; choose another folder") from error


def _sent(task: Task) -> Task:
    """Return a run for a machine of a cluster, which gets the content of the run's folder."""
    argument = replace(task.argument, files=SentFolder(task.argument.folder))
    return replace(task, function="headstart.sweeps.run:measure_there", argument=argument)


def _write(folder: Path, rows: Iterable[Row]) -> None:
    """Replace the file of the table."""
    document = {"schema": SCHEMA, "runs": [asdict(row) for row in rows]}
    write_texts(folder, {TABLE: json.dumps(document, indent=1)})


def _conclude(rows: Sequence[Row], folder: Path) -> None:
    """Print how the runs ended, each error once, and exit with a code that depends on it."""
    counts = Counter(row.state for row in rows)
    errors = Counter((row.state, row.error) for row in rows if row.state != "complete")
    for (state, error), count in errors.most_common():
        say(f"{count} {'run' if count == 1 else 'runs'} {state}: {error or 'see the log'}")
    listed = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    say(f"{len(rows)} runs: {listed}; {sum(row.computed_traces for row in rows)} traces were computed.")

    quoted = shlex.quote(str(folder))
    say(f"Table: {folder / TABLE}; logs: {folder / LOGS}.")
    for task in sorted(COMPARED_BY.keys() & {find_task(row.options) for row in rows}):
        say(f"To compare: headstart {COMPARED_BY[task].format(quoted)}")
    if any(folder.glob("*/wandb/offline-run-*")):
        say(f"To put the runs on the dashboard: wandb sync {quoted}/*/wandb/offline-run-*")

    if counts.keys() - {"complete", "incomplete"}:
        raise SystemExit(UserError.code)
    if counts["incomplete"]:
        raise SystemExit(INCOMPLETE)

"""Sweeps of headstart train, on one machine or a cluster."""

import json
import os
import secrets
import shlex
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from headstart.cli.task import find_task
from headstart.engines.display import Display
from headstart.engines.options import EngineOptions
from headstart.engines.scheduler import MEMORY_RETRIES, RETRIES, run_tasks
from headstart.engines.task import Task, TaskResources
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.output.errors import INCOMPLETE, UserError
from headstart.output.files import alone_in, output_folder
from headstart.output.printable import say
from headstart.output.shipped_files import find_file
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import LedgerError
from headstart.sweeps.request import RunRequest
from headstart.sweeps.server import LOGS, TABLE, DryRunServer, RunsTable, SweepServer
from headstart.sweeps.sweep_file import Sweep, read_mapping, read_sweep
from headstart.sweeps.thresholds import ASSUMED, add_thresholds, choose_threshold, reference_runs

DRIVER, MARK = ".driver.json", ".mark"
# Reference runs lie here; commands that look for runs skip hidden folders.
THRESHOLDS = ".thresholds"
# The commands that show runs of a task side by side.
COMPARED_BY = {"comparison": "leaderboard {}", "target_accuracy": "performances {}/'*'"}


def sweep(
    file: str,
    dry_run: bool = False,
    output: str | None = None,
    ledger: str | None = None,
    cpus: PositiveInt = 1,
    gpus: NonNegativeFloat = 0.0,
    memory: PositiveFloat | None = None,
    runtime_env: str | None = None,
    retries: NonNegativeInt = RETRIES,
    memory_retries: NonNegativeInt = MEMORY_RETRIES,
    timeout: PositiveFloat | None = None,
    seed: NonNegativeInt = 0,
    choose: dict[str, str] | None = None,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Run the runs of a sweep file, here or on a cluster. Existing results are reused, and interrupted sweeps continue.

    Args:
        file: Sweep file in the format of Weights & Biases, as in configs/sweep. If it has the key `reference`, a list
            of options, targets without a threshold are run with these options first, which sets their thresholds.
        dry_run: Print all runs and which of them are missing, without running them.
        output: Folder of the runs, their logs and their table. The default is runs/sweep- and the file's name.
        ledger: Folder of the ledger of traces. The default is the environment variable HEADSTART_LEDGER, or else
            `ledger` beside the output folder.
        cpus: Processors of each run. Another number can round differently.
        gpus: GPUs of each run on a Ray cluster. With 0.5, two runs share a GPU.
        memory: Memory of each run on a Ray cluster, in gigabytes.
        runtime_env: YAML file of Ray's runtime environment for the runs.
        retries: Number of restarts of a run whose process or machine was lost.
        memory_retries: Number of restarts of a run that ran out of memory.
        timeout: Minutes after which a run is stopped and fails. The next sweep continues it.
        seed: Seed of a random search.
        choose: Variants of a method that become one row of a leaderboard, by the row's name: --choose.ridge='ridge (*'.
            On each data set the row is the variant that is best on the other data sets. The leaderboard is written when
            all runs are complete.
        overwrite: Replace results of other code, photos, weights or versions.
        **options: Options of `EngineOptions`.
    """
    engines = EngineOptions(**options)
    if gpus > 1 and gpus % 1:
        raise UserError(f"gpus: {gpus:g} is neither a fraction of one GPU nor a whole number; give 0.5, 1 or 2")
    content = read_sweep(find_file(file), seed)

    folder = output_folder("output", output or f"runs/sweep-{Path(file).stem}")
    ledger_folder = Path(ledger or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger").expanduser()
    environment = {}
    if runtime_env is not None:
        advice = "see Ray's documentation of runtime environments"
        environment = read_mapping("runtime_env", Path(runtime_env), advice)

    if not dry_run:
        _require_usable(ledger_folder)

    patience = retries, memory_retries, timeout
    command = _Command(engines, TaskResources(cpus, gpus, memory), environment, ledger_folder, patience, overwrite)
    carry_out = command.dry_run if dry_run else command.run
    if references := reference_runs(content) if content.reference else {}:
        before = folder / THRESHOLDS
        try:
            carry_out(Sweep(content.name, list(references.values()), content.dashboard), before)
        except SystemExit:
            if dry_run:
                raise
            say("The other runs start when all reference runs are complete, since their thresholds follow from these.")
            raise
        if not dry_run:
            thresholds = {configs: choose_threshold(before / run.name) for configs, run in references.items()}
            for configs, threshold in thresholds.items():
                say(f"{references[configs].name}: the threshold is {threshold:.0%}")
            content = add_thresholds(content, thresholds)
        else:
            say(f"The thresholds of {len(references)} targets are not known yet; {ASSUMED:.0%} stands for them.")
            content = add_thresholds(content, dict.fromkeys(references, ASSUMED))

    carry_out(content, folder)
    if choose and not dry_run:
        runs = [str(folder / run.name) for run in content.runs]
        leaderboard(runs, output=str(folder / "leaderboard"), choose=choose, overwrite=True)


@dataclass(frozen=True)
class _Command:
    """How the runs of a sweep are carried out.

    Attributes:
        engines: Where they run.
        resources: What each of them needs.
        environment: Ray's runtime environment.
        ledger: Folder of the ledger.
        patience: Attempts after a lost process, attempts after a lack of memory, and minutes.
        overwrite: Whether results are replaced that other code, photos, weights or versions gave.
    """

    engines: EngineOptions
    resources: TaskResources
    environment: dict[str, Any]
    ledger: Path
    patience: tuple[int, int, float | None]
    overwrite: bool

    def run(self, content: Sweep, folder: Path) -> None:
        """Measure what the ledger lacks of the runs; exit where one is not complete."""
        with _alone_in(folder) as token:
            table = RunsTable(folder, content.runs)
            tasks = self._tasks(content, folder, "measure", table, token)
            engine = self.engines.open_engine(self.resources, self.environment)
            with (
                Display(content.name, len(tasks)) as display,
                closing(SweepServer(folder, self.ledger, table, display)) as server,
            ):
                run_tasks(engine, tasks, server, *self.patience)
        _conclude(table, folder)

    def dry_run(self, content: Sweep, folder: Path) -> None:
        """Print what the ledger lacks of the runs."""
        tasks = self._tasks(content, folder, "find_missing", RunsTable(folder, content.runs), "")
        engine = self.engines.open_engine(self.resources, self.environment)
        outcomes = run_tasks(engine, tasks, DryRunServer(self.ledger), *self.patience)
        if any(outcome.kind != "done" for outcome in outcomes.values()):
            raise SystemExit(UserError.code)

    def _tasks(self, content: Sweep, folder: Path, function: str, table: RunsTable, token: str) -> list[Task]:
        # Files that Ray brings lie where a task starts.
        working_folder = "" if "working_dir" in self.environment else str(Path.cwd())
        tasks = []
        for run in content.runs:
            request = RunRequest(
                options=(*run.options, *["--results.overwrite=true"] * self.overwrite),
                folder=str((folder / run.name).absolute()),
                ledger=str(self.ledger.absolute()) if self.engines.ray is None else None,
                dashboard={**content.dashboard, "parameters": dict(run.parameters)},
                cpus=self.resources.cpus,
                known="" if self.overwrite else table.known(run.name),
                mark=str((folder / MARK).absolute()),
                token=token,
            )
            tasks.append(Task(run.name, f"headstart.sweeps.measure:{function}", request, working_folder))
        return tasks


def _require_usable(ledger: Path) -> None:
    """Raise a UserError before the first run where the ledger cannot be written."""
    try:
        Ledger(ledger).close()
    except LedgerError as error:
        raise UserError(f"ledger: {error}; choose another folder") from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[str]:
    """Lock a sweep's folder; return the token that marks this command's disk.

    Raises:
        UserError: Another command holds the lock; the message names it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(alone_in("output", folder))
        except UserError as error:
            other = ""
            with suppress(OSError, ValueError, KeyError):
                driver = json.loads((folder / DRIVER).read_text())
                other = f", process {driver['process']} on {driver['machine']} since {driver['since']}"
            raise UserError(
                f"output: another sweep runs in {str(folder)!r}{other}; wait for it, or choose another folder"
            ) from error

        for name in (MARK, DRIVER):
            stack.callback((folder / name).unlink, missing_ok=True)
        token = secrets.token_hex(8)
        driver = {"process": os.getpid(), "machine": socket.gethostname(), "since": time.strftime("%F %T")}
        (folder / DRIVER).write_text(json.dumps(driver))
        (folder / MARK).write_text(token)
        yield token


def _conclude(table: RunsTable, folder: Path) -> None:
    """Print how the runs ended, each error once, and exit with a code that depends on it."""
    rows = list(table.rows.values())
    counts = Counter(row.state for row in rows)
    errors = Counter((row.state, row.where, row.error) for row in rows if row.state != "complete")
    for (state, where, error), count in errors.most_common():
        say(f"{count} {'run' if count == 1 else 'runs'} {state} on {where or 'no machine'}: {error or 'see the log'}")
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

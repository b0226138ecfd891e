"""Sweeps of headstart train on one machine or a cluster."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout
from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from headstart.cli.task import find_task
from headstart.engines.choose import choose_engine, require_one_engine
from headstart.engines.display import Display
from headstart.engines.ray_cluster import Needs
from headstart.engines.schedule import run_tasks
from headstart.engines.task import Task
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.output.errors import UserError, broken_yaml, reason_of
from headstart.output.files import output_folder
from headstart.output.printable import say
from headstart.output.shipped_files import find_file
from headstart.sweeps.keeper import LOGS, Keeper, Looker
from headstart.sweeps.request import Request
from headstart.sweeps.runs_table import FILE, RunsTable
from headstart.sweeps.sweep_file import read_sweep

LOCK, DRIVER, MARK = ".lock", ".driver.json", ".mark"
# What the exit codes of headstart train mean, too.
FAILED, INCOMPLETE = 1, 75
# The commands that show runs of a task side by side.
COMPARED_BY = {"comparison": "leaderboard {}", "target_accuracy": "performances {}/'*'"}


def sweep(
    file: str,
    workers: PositiveInt | None = None,
    ray: str | None = None,
    dry_run: bool = False,
    output: str | None = None,
    ledger: str | None = None,
    cpus: PositiveInt = 1,
    gpus: NonNegativeFloat = 0.0,
    memory: PositiveFloat | None = None,
    runtime_env: str | None = None,
    retries: NonNegativeInt = 3,
    memory_retries: NonNegativeInt = 1,
    seed: NonNegativeInt = 0,
    choose: dict[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Run what a sweep file asks for and the ledger lacks, here or on a cluster; the same command again goes on.

    Args:
        file: Sweep file in the format of Weights & Biases, as in configs/sweep.
        workers: Run in so many processes beside; by default one run after the other.
        ray: Run on the Ray cluster at this address, or on that of this machine with `auto`.
        dry_run: Say what would run and what the ledger has, and run nothing.
        output: Folder of the runs, their logs and the table of them; by default runs/sweep- and the file's name.
        ledger: Folder of the ledger of traces; by default that in the environment variable HEADSTART_LEDGER, else
            `ledger` beside the output folder.
        cpus: Processors of each run, the same wherever it runs: another number may round differently.
        gpus: GPUs of each run on a Ray cluster; 0.5 lets two share one.
        memory: Memory of each run on a Ray cluster, in gigabytes.
        runtime_env: YAML file of Ray's runtime environment for the runs.
        retries: How often a run is begun again whose process or machine was lost.
        memory_retries: How often one is for which memory did not suffice.
        seed: Seed of the draws of a random search.
        choose: Variants of a method, such as those of swept hyperparameters, that become one row of the leaderboard
            which is then written when all runs are complete, by the row's name: --choose.ridge='ridge (*'. On each data
            set the row is that variant which is best on the other data sets.
        overwrite: Replace results that other code, photos, weights or versions gave.
    """
    require_one_engine(workers, ray)
    if gpus > 1 and gpus % 1:
        raise UserError(f"gpus: {gpus:g} is neither a part of one GPU nor a whole number of them; give 0.5, 1 or 2")
    asked = read_sweep(find_file(file), seed)
    folder = output_folder("output", output or f"runs/sweep-{Path(file).stem}")
    traces = Path(ledger or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger").expanduser()
    environment = {} if runtime_env is None else _read_environment(Path(runtime_env))
    with nullcontext("") if dry_run else _alone_in(folder) as token:
        table = RunsTable(folder, asked.runs)
        requests = {
            run.name: Request(
                options=(*run.options, *["--results.overwrite=true"] * overwrite),
                folder=str((folder / run.name).absolute()),
                dashboard=asked.dashboard,
                cpus=cpus,
                known="" if overwrite else table.known(run.name),
                mark=str((folder / MARK).absolute()),
                token=token,
            )
            for run in asked.runs
        }
        function = f"headstart.sweeps.measure:{'look' if dry_run else 'measure'}"
        # Files that Ray brings lie where a task begins.
        working = "" if "working_dir" in environment else str(Path.cwd())
        tasks = [Task(name, function, request, working) for name, request in requests.items()]
        engine = choose_engine(workers, ray, Needs(cpus, gpus, memory), environment)
        if dry_run:
            looker = Looker(traces)
            run_tasks(engine, tasks, looker, retries, memory_retries)
            if looker.mistaken:
                raise SystemExit(FAILED)
            return
        with Display(asked.name, len(tasks)) as display, closing(Keeper(folder, traces, table, display)) as keeper:
            run_tasks(engine, tasks, keeper, retries, memory_retries)
    _conclude(table, folder)
    if choose:
        its = [str(folder / name) for name in table.rows]
        leaderboard(its, str(folder / "leaderboard"), choose=choose, overwrite=True)


def _read_environment(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"runtime_env: {str(path)!r} cannot be read ({reason_of(error)})") from error
    except yaml.YAMLError as error:
        raise UserError(f"runtime_env: {str(path)!r} is no YAML ({broken_yaml(error)})") from error
    if not isinstance(content, dict):
        raise UserError(f"runtime_env: {str(path)!r} holds no mapping; see Ray's documentation of runtime environments")
    return content


@contextmanager
def _alone_in(folder: Path) -> Iterator[str]:
    """Keep other commands from a sweep's folder, which are told who is there; give what marks this command's disk."""
    folder.mkdir(parents=True, exist_ok=True)
    lock, token = FileLock(folder / LOCK), secrets.token_hex(8)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        there = ""
        with suppress(OSError, ValueError, KeyError):
            who = json.loads((folder / DRIVER).read_text())
            there = f", process {who['process']} on {who['machine']} since {who['since']}"
        raise UserError(
            f"output: another sweep runs in {str(folder)!r}{there}; wait for it, or choose another folder"
        ) from error
    try:
        who = {"process": os.getpid(), "machine": socket.gethostname(), "since": time.strftime("%F %T")}
        (folder / DRIVER).write_text(json.dumps(who))
        (folder / MARK).write_text(token)
        yield token
    finally:
        for name in (DRIVER, MARK, LOCK):
            (folder / name).unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):
            folder.rmdir()


def _conclude(table: RunsTable, folder: Path) -> None:
    """Say how the runs ended, a mistake that many share once, and end with a code that tells."""
    rows = list(table.rows.values())
    counts = Counter(row.state for row in rows)
    shared = Counter((row.state, row.where, row.error) for row in rows if row.state != "complete")
    for (state, where, error), count in shared.most_common():
        say(f"{count} {'run' if count == 1 else 'runs'} {state} on {where or 'no machine'}: {error or 'see the log'}")
    listed = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    say(f"{len(rows)} runs: {listed}; {sum(row.computed_traces for row in rows)} traces were computed.")
    quoted = shlex.quote(str(folder))
    say(f"Table: {folder / FILE}; logs: {folder / LOGS}.")
    for task in sorted(COMPARED_BY.keys() & {find_task(row.options) for row in rows}):
        say(f"To compare: headstart {COMPARED_BY[task].format(quoted)}")
    if any(folder.glob("*/wandb/offline-run-*")):
        say(f"To put the runs on the dashboard: wandb sync {quoted}/*/wandb/offline-run-*")
    if counts.keys() - {"complete", "incomplete"}:
        raise SystemExit(FAILED)
    if counts["incomplete"]:
        raise SystemExit(INCOMPLETE)

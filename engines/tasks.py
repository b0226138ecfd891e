"""Independent tasks, run in this process, in workers, or on a Ray cluster."""

import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.engines.options import EngineOptions, Needs
from headstart.engines.perform import Outcome, Task, perform
from headstart.engines.ray_cluster import RayCluster
from headstart.engines.workers import Workers
from headstart.output.errors import explain_write_errors
from headstart.output.printable import say
from headstart.output.processors import count_processors, limit_processors, list_gpus
from headstart.output.progress import Progress

__all__ = ["EngineOptions", "Needs", "Outcome", "Task", "run_tasks"]


def run_tasks(
    tasks: Sequence[Task],
    engine: EngineOptions,
    *,
    title: str = "",
    logs: Path | None = None,
    needs: Needs = Needs(),  # noqa: B008 - it is frozen
    shared: Any = None,  # noqa: ANN401 - whatever tasks share
) -> Generator[Outcome, None, None]:
    """Run tasks, and yield how each ended as soon as it has.

    A task whose process dies, or is told to end, is started once more, after all others. Errors of its function are
    final.

    Closing the iterator ends everything that still runs. So iterate within `contextlib.closing`: then Ctrl-C and
    SIGTERM leave nothing behind, wherever they arrive.

    Args:
        tasks: The tasks.
        engine: Where they run.
        title: Title of the progress of tasks that run elsewhere; nothing is shown where it is empty.
        logs: Folder of a log for each task, with all that it prints; without one, tasks print as the command does.
        needs: What each task needs.
        shared: The second argument of all functions, unless it is None; a cluster brings it to each machine once.

    Raises:
        UserError: A process cannot be started, or there is no such cluster.
    """
    if not tasks:
        return
    if engine.is_serial:
        for task in tasks:
            with limit_processors(needs.cpus) if needs.cpus else nullcontext():
                outcome = perform(task, _log_of(task, logs), shared)
            yield replace(outcome, task=task)
        return

    waiting, running, died = deque(tasks), 0, set[str]()
    with (
        closing(_open(engine, needs, shared)) as opened,
        Progress(title, len(tasks), "tasks") if title else nullcontext() as progress,
    ):
        while waiting or running:
            while waiting and opened.has_room():
                task = waiting.popleft()
                opened.start(task, _log_of(task, logs, task.name in died))
                running += 1

            for outcome in opened.wait():
                running -= 1
                if outcome.died and outcome.task.name not in died:
                    died.add(outcome.task.name)
                    waiting.append(outcome.task)
                    say(f"{outcome.task.name}: {outcome.error}; it is started again", sys.stderr)
                    continue
                if progress is not None:
                    progress.advance()
                yield outcome


def _log_of(task: Task, folder: Path | None, is_second: bool = False) -> Path | None:
    """Return the file of a task's log, which does not exist when the task is started for the first time."""
    if folder is None:
        return None
    path = folder / f"{task.name}.log"
    with explain_write_errors(f"logs: {str(path)!r}", "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        if not is_second:
            path.unlink(missing_ok=True)
    return path


def _open(engine: EngineOptions, needs: Needs, shared: Any) -> Workers | RayCluster:  # noqa: ANN401 - whatever tasks share
    if engine.ray is not None:
        return RayCluster(engine.ray, needs, shared)
    assert engine.workers is not None
    cpus = needs.cpus or max(1, count_processors() // engine.workers)
    return Workers(engine.workers, cpus, list_gpus(), shared)

"""The outcomes of tasks that need nothing of the command that started them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headstart.engines.display import Display
from headstart.engines.schedule import run_tasks
from headstart.engines.task import Engine, Outcome, Said, Started, Task

RETRIES, MEMORY_RETRIES = 3, 1


def collect(engine: Engine, tasks: Sequence[Task], title: str) -> dict[str, Outcome]:
    """Run tasks to their ends.

    Args:
        engine: Where they run.
        tasks: The tasks.
        title: What they are for.

    Returns:
        How they ended, by the tasks' names.
    """
    with Display(title, len(tasks)) as display:
        listener = _Collector(display)
        run_tasks(engine, tasks, listener, RETRIES, MEMORY_RETRIES)
    return {task.name: listener.outcomes[task.name] for task in tasks}


class _Collector:
    def __init__(self, display: Display) -> None:
        self.display = display
        self.outcomes: dict[str, Outcome] = {}

    def asked(self, task: Task, message: Any) -> None:  # noqa: ANN401 - whatever a task asks
        match message:
            case Started(where):
                self.display.started(task.name, where)
            case Said(line):
                self.display.said(task.name, line)

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        self.outcomes[task.name] = outcome
        self.display.ended(task.name, outcome.kind, outcome.error, again)

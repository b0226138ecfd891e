"""The outcomes of tasks that need nothing of the command that started them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from engines.display import Display
from engines.schedule import run_tasks
from engines.task import Engine, Outcome, Said, Started, Task

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
        self._began: dict[str, float] = {}

    def asked(self, task: Task, message: Any) -> None:  # noqa: ANN401 - whatever a task asks
        match message:
            case Started(where):
                self._began[task.name] = time.monotonic()
                self.display.started(task.name, where)
            case Said(line):
                self.display.said(task.name, line)

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        seconds = time.monotonic() - self._began.get(task.name, time.monotonic())
        self.outcomes[task.name] = outcome
        after = "it is begun again" if again else f"after {seconds:.1f} s"
        state = f"{outcome.kind}{f' ({outcome.error})' if outcome.error else ''}, {after}"
        self.display.ended(task.name, state, final=not again)

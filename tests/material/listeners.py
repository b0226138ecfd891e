"""A listener that records what engines tell it."""

from collections.abc import Callable
from typing import Any

from headstart.engines.scheduler import run_tasks
from headstart.engines.task import Engine, Outcome, Task, TaskMessage

TASKS = "headstart.tests.material.tasks"
Open = Callable[[], Engine]


class Notes:
    """Answers questions, and records everything that it receives."""

    def __init__(self) -> None:
        self.printed: list[tuple[str, str]] = []
        self.hosts: dict[str, str] = {}
        self.ends: list[tuple[str, Outcome, bool]] = []
        self.numbers: list[int] = []
        self.progress: list[Any] = []
        self.waits = 0

    def receive(self, task: Task, message: TaskMessage) -> Any:
        match message:
            case TaskMessage("started", host):
                self.hosts[task.name] = host
            case TaskMessage("printed", line):
                self.printed.append((task.name, line))
            case TaskMessage("number", number):
                self.numbers.append(number)
            case TaskMessage("question", int(power)):
                return 10**power
            case _:
                self.progress.append(message.content)
        return None

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        self.ends.append((task.name, outcome, again))

    def waited(self) -> None:
        self.waits += 1

    @property
    def results(self) -> dict[str, Any]:
        return {name: outcome.result for name, outcome, _ in self.ends}


def run(engine: Engine, *tasks: Task, retries: int = 0, memory_retries: int = 0) -> Notes:
    notes = Notes()
    run_tasks(engine, tasks, notes, retries, memory_retries)
    return notes

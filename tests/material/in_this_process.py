"""An engine for tests that starts no process."""

from collections.abc import Callable

from headstart.datamodules import piece_task
from headstart.engines.task import Outcome, Receive, Task, TaskMessage, perform


class InThisProcess:
    """An engine that runs one task after the other here.

    Args:
        before: Called with each task before it runs; it may change the task, or end it with an outcome.
    """

    def __init__(self, before: Callable[[Task], Task | Outcome] = lambda task: task) -> None:
        self.before = before
        self.task: Task | None = None
        self.names: list[str] = []

    def room(self) -> int:
        return 1 - (self.task is not None)

    def start(self, task: Task) -> bool:
        self.task = task
        self.names.append(task.name)
        return True

    def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        if self.task is not None:
            task, self.task = self.task, None
            changed = self.before(task)
            if isinstance(changed, Task):
                # What the command prints of a message must not become another one.
                messages: list[TaskMessage] = []
                changed = perform(changed, messages.append)
                for message in messages:
                    receive(task, message)
            ended.append((task, changed))

    def end(self, task: Task) -> None:
        pass

    def close(self) -> None:
        while piece_task._jobs:
            piece_task._jobs.pop().filler.__exit__(None, None, None)

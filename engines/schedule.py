"""Run tasks on an engine to their end, and start lost ones again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Protocol

from headstart.engines.task import Engine, Outcome, Task, TaskMessage

RETRIES, MEMORY_RETRIES = 3, 1


class Listener(Protocol):
    """Follows tasks, in the process that started them."""

    def receive(self, task: Task, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        """Process a message of a task, and return the answer to it."""

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Process the end of a task, which may be started again."""


def run_tasks(
    engine: Engine,
    tasks: Sequence[Task],
    listener: Listener,
    retries: int = RETRIES,
    memory_retries: int = MEMORY_RETRIES,
) -> dict[str, Outcome]:
    """Run tasks in their order, as many side by side as the engine has room for.

    Args:
        engine: Where they run; it is closed at the end.
        tasks: The tasks.
        listener: What follows them.
        retries: How often a task is started again whose process or machine was lost.
        memory_retries: How often a task is started again that ran out of memory.

    Returns:
        How they ended at last, by the tasks' names.

    Raises:
        KeyboardInterrupt: The command was interrupted; running tasks are asked to end, and waited for.
        Terminated: The command was terminated; likewise.
    """
    waiting, running = deque(tasks), 0
    outcomes: dict[str, Outcome] = {}
    allowed, failures = {"lost": retries, "memory": memory_retries}, Counter[tuple[str, str]]()

    def wait() -> int:
        ended = engine.wait(listener.receive)
        for task, outcome in ended:
            failures[task.name, outcome.kind] += 1
            again = failures[task.name, outcome.kind] <= allowed.get(outcome.kind, 0)
            outcomes[task.name] = outcome
            listener.ended(task, outcome, again)
            if again:
                waiting.append(task)
        return len(ended)

    try:
        while waiting or running:
            while waiting and engine.room() > 0:
                engine.start(waiting.popleft())
                running += 1
            running -= wait()
    except BaseException:
        waiting.clear()
        engine.stop()
        while running > 0:
            running -= wait()
        raise
    finally:
        engine.close()

    return {task.name: outcomes[task.name] for task in tasks}

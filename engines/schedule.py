"""Run tasks on an engine to their end, and begin again those that were lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Protocol

from headstart.engines.task import Engine, Outcome, Task


class Listener(Protocol):
    """What is told of the tasks, in the process that started them."""

    def asked(self, task: Task, message: Any) -> Any:  # noqa: ANN401 - whatever a task asks
        """Answer a task."""

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Take note of how a task ended, and whether it is begun again."""


def run_tasks(engine: Engine, tasks: Iterable[Task], listener: Listener, retries: int, memory_retries: int) -> None:
    """Run tasks in their order, as many side by side as the engine has room for.

    Args:
        engine: Where they run.
        tasks: The tasks.
        listener: What is told of them.
        retries: How often a task is begun again whose process or machine was lost.
        memory_retries: How often one is for which memory did not suffice.

    Raises:
        KeyboardInterrupt: Of the command; the tasks that run are asked to end, and waited for.
        Terminated: Likewise.
    """
    waiting, running = deque(tasks), 0
    left = Counter(
        {(task.name, kind): n for task in waiting for kind, n in (("lost", retries), ("memory", memory_retries))}
    )

    def wait() -> int:
        ended = engine.wait(listener.asked)
        for task, outcome in ended:
            left[task.name, outcome.kind] -= 1
            again = left[task.name, outcome.kind] >= 0
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

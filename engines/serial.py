"""Tasks one after the other, in the command's own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headstart.engines.task import Outcome, Task, perform


class Serial:
    """Does one task at a time where it was started."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.stopped = False

    def room(self) -> int:
        """Tell how many more tasks can be started."""
        return 1 if self.task is None else 0

    def start(self, task: Task) -> None:
        """Take the next task."""
        self.task = task

    def wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        """Do the task.

        Args:
            answer: Gives the answers to what it asks.

        Raises:
            KeyboardInterrupt: Of the command, which stopped its task.
            Terminated: Likewise.
        """
        task = self.task
        assert task is not None
        if self.stopped:
            return [(task, Outcome("stopped"))]
        # What stops the command comes while it does a task.
        self.stopped = True
        outcome = perform(task, lambda message: answer(task, message))
        self.stopped, self.task = False, None
        return [(task, outcome)]

    def stop(self) -> None:
        """Do nothing: what stops the command has stopped its task."""

    def close(self) -> None:
        """Do nothing: nothing else runs."""

"""Tasks one after the other, in the command's own process."""

from __future__ import annotations

from headstart.engines.task import Outcome, Receive, Task, perform


class Serial:
    """Runs one task at a time, in the process that starts it."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.stopped = False

    def room(self) -> int:
        """Return how many more tasks can be started."""
        return 1 if self.task is None else 0

    def start(self, task: Task) -> None:
        """Keep the task, which `wait` runs."""
        self.task = task

    def wait(self, receive: Receive) -> list[tuple[Task, Outcome]]:
        """Run the task.

        Args:
            receive: What its messages are passed to.

        Raises:
            KeyboardInterrupt: The command was interrupted, and so was its task.
            Terminated: The command was terminated, and so was its task.
        """
        task = self.task
        assert task is not None
        if self.stopped:
            return [(task, Outcome("stopped"))]

        # An exception that stops the command leaves this set.
        self.stopped = True
        outcome = perform(task, lambda message: receive(task, message))
        self.stopped, self.task = False, None
        return [(task, outcome)]

    def stop(self) -> None:
        """Do nothing: what stops the command has stopped its task."""

    def close(self) -> None:
        """Do nothing: nothing else runs."""

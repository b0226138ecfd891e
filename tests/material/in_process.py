"""An engine without processes, for tests of what its tasks do."""

from headstart.engines.task import Outcome, Receive, Task, perform


class InProcess:
    """Runs one task at a time, in the process that waits for it."""

    def __init__(self) -> None:
        self.task: Task | None = None

    def room(self) -> int:
        return int(self.task is None)

    def start(self, task: Task) -> bool:
        self.task = task
        return True

    def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        assert self.task is not None
        task, self.task = self.task, None
        ended.append((task, perform(task, lambda message: receive(task, message))))

    def end(self, task: Task) -> None:
        """Nothing runs while the command does something else."""

    def close(self) -> None:
        """Nothing runs while the command does something else."""

"""Run tasks to their end on the engine that a command's options choose, and start lost tasks again."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Protocol

from jsonargparse.typing import PositiveInt

from headstart.engines.ray_cluster import RayCluster
from headstart.engines.task import Engine, Outcome, Receive, Task, TaskMessage, TaskResources, perform
from headstart.engines.workers import Workers
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.output.processors import count_processors, list_gpus

RETRIES, MEMORY_RETRIES = 3, 1


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


class EngineOptions:
    """Where independent tasks run: one after the other in this process by default.

    As a base class, it adds its options to those of the next base class.

    Args:
        workers: Run so many side by side, each in a process of its own; by default one after the other.
        ray: Run on the Ray cluster at this address, or on that of this machine with `auto`.
        **options: Options of the next base class.

    Raises:
        UserError: Two engines are chosen.
    """

    def __init__(self, workers: PositiveInt | None = None, ray: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        if workers is not None and ray is not None:
            raise UserError("ray: it runs in workers of this machine or on a cluster; leave out --workers or --ray")
        self.workers, self.ray = workers, ray

    @property
    def is_serial(self) -> bool:
        """Whether tasks run one after the other in this process."""
        return self.workers is None and self.ray is None

    @property
    def cpus_per_task(self) -> int:
        """Number of processors for each task, if the workers share those of this machine evenly."""
        return max(1, count_processors() // self.workers) if self.workers else 1

    def open_engine(self, resources: TaskResources, runtime_environment: dict[str, Any] | None = None) -> Engine:
        """Open the engine.

        Args:
            resources: What each task needs.
            runtime_environment: Ray's runtime environment of the tasks.

        Raises:
            UserError: There is no such cluster.
        """
        if self.ray is not None:
            return RayCluster(self.ray, resources, runtime_environment or {})

        available, used = count_processors(), resources.cpus * (self.workers or 1)
        if used < available:
            say(f"{used} of {available} processors are used; --workers runs more side by side")
        return Serial() if self.workers is None else Workers(self.workers, list_gpus())


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

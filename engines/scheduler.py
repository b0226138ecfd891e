"""Run tasks to their end on an engine: count them, end those that take too long, and start lost ones again."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from headstart.engines.task import Engine, Outcome, Task, TaskMessage, deferred_signals

RETRIES, MEMORY_RETRIES = 3, 1


class Listener(Protocol):
    """Follows tasks, in the process that started them. An error that it raises ends the command."""

    def receive(self, task: Task, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        """Process a message of a task, and return the answer to it."""

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Process the end of a task, which may be started again."""

    def waited(self) -> None:
        """Check what has become overdue: about a second has passed, or a task has ended."""


def run_tasks(
    engine: Engine,
    tasks: Iterable[Task],
    listener: Listener,
    retries: int = RETRIES,
    memory_retries: int = MEMORY_RETRIES,
    timeout: float | None = None,
    *,
    stay_open: bool = False,
) -> dict[str, Outcome]:
    """Run tasks in their order, as many side by side as the engine has room for.

    Args:
        engine: Where they run; it is closed at the end, or at an error.
        tasks: The tasks; the next is taken when there is room for it.
        listener: It is told what happens to them.
        retries: How often a task is started again whose process or machine was lost.
        memory_retries: How often a task is started again that ran out of memory.
        timeout: Minutes after which a task that still runs is ended and counts as failed.
        stay_open: Whether the engine stays open for further tasks.

    Returns:
        How they ended at last, by the tasks' names.

    Raises:
        KeyboardInterrupt: The command was interrupted; running tasks are asked to end, and waited for.
        Terminated: The command was terminated; likewise.
        Exception: The listener raised it; likewise.
    """
    run = _Run(engine, tasks, listener, {"lost": retries, "memory": memory_retries}, timeout)
    try:
        while run.next() is not None or run.running:
            run.start()
            run.wait()
    except BaseException:
        run.end_all()
        while run.running:
            run.wait()
        stay_open = False
        raise
    finally:
        if run.error is not None or not stay_open:
            engine.close()
        run.give_up()

    if run.error is not None:
        raise run.error
    return {name: run.outcomes[name] for name in run.started}


class _Run:
    """The state of tasks that run."""

    def __init__(
        self,
        engine: Engine,
        tasks: Iterable[Task],
        listener: Listener,
        retries: dict[str, int],
        timeout: float | None,
    ) -> None:
        self.engine, self.listener, self.retries, self.timeout = engine, listener, retries, timeout
        self._tasks = iter(tasks)
        # The task that is started next, and those that are to be started again after all others.
        self._next: Task | None = None
        self._again = deque[Task]()
        # Names of the tasks that were started, in their order.
        self.started: dict[str, None] = {}
        # The time at which each task began to run, by name; None before.
        self.running: dict[str, tuple[Task, float | None]] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.error: Exception | None = None
        # Whether no further task is started.
        self.is_ending = False
        self._ended: list[tuple[Task, Outcome]] = []
        self._failures = Counter[tuple[str, str]]()
        self._too_long: set[str] = set()

    def next(self) -> Task | None:
        """Return the task that is started next, None if there is no more."""
        if self._next is None:
            self._next = next(self._tasks, None)
        if self._next is None and self._again:
            self._next = self._again.popleft()
        return self._next

    def start(self) -> None:
        while self.engine.room() > 0 and (task := self.next()) is not None:
            # A signal that stops the command waits until it is known which tasks run.
            with deferred_signals():
                has_begun = self.engine.start(task)
                self._next = None
                self.started[task.name] = None
                # A suspended process never reports that its task has begun.
                self.running[task.name] = task, time.monotonic() if has_begun else None

    def wait(self) -> None:
        """Wait for messages and ends, and pass them to the listener."""
        self.engine.wait(self._receive, self._ended)
        # A signal that stops the command waits until the listener knows.
        with deferred_signals():
            while self._ended:
                self._end(*self._ended.pop(0))

        self._end_overdue()
        self._tell(self.listener.waited)

    def end_all(self) -> None:
        """Start no more tasks, and ask those that run to end."""
        self.is_ending = True
        self._tasks, self._next = iter(()), None
        self._again.clear()
        for task, _ in list(self.running.values()):
            self.engine.end(task)

    def give_up(self) -> None:
        """Report the tasks whose end was not awaited, because a second signal came."""
        ended = {task.name: outcome for task, outcome in self._ended}
        left, self.running = self.running, {}
        with deferred_signals():
            for task, _ in left.values():
                self._tell(self.listener.ended, task, ended.get(task.name, Outcome("stopped")), False)

    def _receive(self, task: Task, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        if message.kind == "started":
            self.running[task.name] = task, time.monotonic()
        return self._tell(self.listener.receive, task, message)

    def _end(self, task: Task, outcome: Outcome) -> None:
        # The end is counted before the listener is called, which may raise an error.
        del self.running[task.name]
        if task.name in self._too_long and outcome.kind in ("lost", "stopped"):
            outcome = Outcome("failed", error=f"it ran longer than {self.timeout:g} minutes", where=outcome.where)

        self._too_long.discard(task.name)

        failure = task.name, outcome.kind
        self._failures[failure] += 1
        again = not self.is_ending and self._failures[failure] <= self.retries.get(outcome.kind, 0)
        self.outcomes[task.name] = outcome
        if again:
            self._again.append(task)
        self._tell(self.listener.ended, task, outcome, again)

    def _end_overdue(self) -> None:
        for task, start in list(self.running.values()):
            is_overdue = start is not None and self.timeout and time.monotonic() - start > 60 * self.timeout
            if is_overdue and task.name not in self._too_long:
                self._too_long.add(task.name)
                self.engine.end(task)

    def _tell(self, call: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401 - as the message demands
        """Call the listener; its first error ends all tasks, and is raised when they have ended."""
        try:
            return call(*arguments)
        except Exception as error:
            if self.error is None:
                self.error = error
                self.end_all()
            return None

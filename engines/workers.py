"""Tasks in worker processes, which live as long as the command, so that each imports libraries once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NoReturn

from headstart.engines.task import Outcome, Receive, Task, TaskMessage, deferred_signals, perform
from headstart.output.errors import Terminated, UserError, reason_of
from headstart.output.processors import count_memory, peak_memory

# A forked process would inherit threads and locks of libraries in whatever state they are.
CONTEXT = multiprocessing.get_context("spawn")
SECONDS_TO_WAIT = 1.0
# Time for a task that is told to end to write its results so far.
SECONDS_TO_STOP = 15.0
# A process that has used more than this share of its part of the memory is replaced before the next task.
SHARE_OF_MEMORY = 0.5


class Workers:
    """Runs as many tasks at once as there are processes.

    Args:
        count: Number of processes.
        gpus: The GPUs that they are spread over, as CUDA_VISIBLE_DEVICES names them; every process sees one of them.
    """

    def __init__(self, count: int, gpus: list[str]) -> None:
        # Memory that a task has not freed would be missing for those that follow it.
        most = SHARE_OF_MEMORY * count_memory() / count
        self.workers = [_Worker(gpus[index % len(gpus)] if gpus else None, most) for index in range(count)]

    def room(self) -> int:
        """Return how many more tasks can be started."""
        return sum(worker.task is None for worker in self.workers)

    def start(self, task: Task) -> bool:
        """Start a task in an idle process, which may not answer."""
        next(worker for worker in self.workers if worker.task is None).start(task)
        return True

    def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        """Receive the messages of tasks, for a second or until a task ends; see `Engine.wait`."""
        with deferred_signals():
            for worker in self.workers:
                worker.kill_if_overdue()
            busy = {worker.connection: worker for worker in self.workers if worker.task is not None}
            for connection in wait(list(busy), SECONDS_TO_WAIT):
                worker = busy[connection]  # type: ignore[index]  # one of those that were given
                task, outcome = worker.task, worker.receive(receive)
                if outcome is not None and task is not None:
                    ended.append((task, outcome))

    def end(self, task: Task) -> None:
        """Ask a running task to end; it is killed where that takes too long."""
        for worker in self.workers:
            if worker.task is task:
                worker.terminate()

    def close(self) -> None:
        """Kill all processes."""
        for worker in self.workers:
            worker.kill()


class _Worker:
    """One process, started with its first task and, after its death, with the next one."""

    def __init__(self, gpu: str | None, most_memory: float) -> None:
        self.gpu, self.most_memory = gpu, most_memory
        self.task: Task | None = None
        self.process: SpawnProcess | None = None
        self.connection: Connection[Any, Any]
        # The time at which a task that was told to end is killed.
        self.deadline: float | None = None

    def start(self, task: Task) -> None:
        if self.process is None:
            self.connection, other_end = CONTEXT.Pipe()
            # A daemon could not decode photos in processes of its own. This process ends when the command does.
            process = CONTEXT.Process(target=_serve, args=(other_end, self.gpu, multiprocessing.get_start_method()))
            try:
                process.start()
            except OSError as error:
                raise UserError(
                    f"workers: a process cannot be started ({reason_of(error)}); repeat the command, "
                    "perhaps with fewer workers"
                ) from error
            self.process = process
            # With its other end closed here, the connection ends with the process.
            other_end.close()
        self.task, self.deadline = task, None
        # `receive` notices if the process has died in the meantime.
        with suppress(OSError):
            self.connection.send(task)

    def receive(self, receive: Receive) -> Outcome | None:
        """Receive one message; return the outcome if the task has ended."""
        assert self.task is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            return self._lost()
        if isinstance(message, TaskMessage):
            receive(self.task, message)
            return None

        self.task = None
        outcome: Outcome = message
        if outcome.kind == "memory" or outcome.peak_memory > self.most_memory:
            self.kill()
        return outcome

    def _lost(self) -> Outcome:
        assert self.process is not None
        self.process.join(SECONDS_TO_WAIT)
        code = self.process.exitcode
        self.kill()
        self.task = None
        by = f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with code {code}"
        host = socket.gethostname()
        if self.deadline is not None:
            return Outcome("stopped", where=host)
        return Outcome("lost", error=f"its process ended {by}", where=host)

    def terminate(self) -> None:
        assert self.process is not None
        # A second signal would interrupt what the task does at the first.
        if self.deadline is None:
            self.deadline = time.monotonic() + SECONDS_TO_STOP
            self.process.terminate()

    def kill_if_overdue(self) -> None:
        # The connection stays open: its end is the end of the task.
        if self.process is not None and self.deadline is not None and time.monotonic() > self.deadline:
            self.process.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None


def _serve(connection: Connection[Any, Any], gpu: str | None, start_method: str) -> None:
    """Run tasks until the command is gone."""
    # Ctrl-C reaches all processes of a terminal; the command decides which of its tasks end, and how.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    threading.Thread(target=_end_with_command, daemon=True).start()
    # Tasks start processes as the command does: forked decoders need not import torch again.
    multiprocessing.set_start_method(start_method, force=True)
    # The command notices the end of this process by the connection's end.
    os.register_at_fork(after_in_child=connection.close)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu

    # Reentrant, because pickling a message may print a warning.
    lock, is_busy = threading.RLock(), False

    def send(message: TaskMessage) -> None:
        # The command would wait for the rest of a message that a signal cuts off.
        with lock, deferred_signals():
            # A thread may outlive its task.
            if not is_busy:
                return
            try:
                connection.send(message)
            except OSError as error:  # the command is gone
                raise Terminated from error

    # An error here means that the command is gone, or ended this process between two tasks.
    with suppress(EOFError, OSError, Terminated):
        while True:
            task, is_busy = connection.recv(), True
            try:
                outcome = perform(task, send)
            except Terminated:
                outcome = Outcome("stopped")
            outcome = replace(outcome, peak_memory=peak_memory())
            with lock, deferred_signals():
                is_busy = False
                connection.send(outcome)
    # Threads that a library has left do not delay the end.
    os._exit(0)


def _end_with_command() -> None:
    """End this process's task, like SIGTERM does, as soon as the command is gone."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _terminate(*_: object) -> NoReturn:
    raise Terminated

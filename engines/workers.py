"""Tasks in worker processes, which live as long as the command, so that each imports libraries once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NoReturn

from headstart.engines.task import Outcome, Receive, Task, TaskMessage, deferred_signals, perform
from headstart.output.errors import Terminated

# A forked process would inherit threads and locks of libraries in whatever state they are.
CONTEXT = multiprocessing.get_context("spawn")
SECONDS_TO_WAIT = 1.0
# Time for a task that is asked to end to write its results so far.
SECONDS_TO_STOP = 15.0


class Workers:
    """Runs as many tasks at once as there are processes.

    Args:
        count: Number of processes.
        gpus: The GPUs that they are spread over, as CUDA_VISIBLE_DEVICES names them; every process sees one of them.
    """

    def __init__(self, count: int, gpus: list[str]) -> None:
        self.workers = [_Worker(gpus[index % len(gpus)] if gpus else None) for index in range(count)]
        self._deadline: float | None = None

    def room(self) -> int:
        """Return how many more tasks can be started."""
        return sum(worker.task is None for worker in self.workers)

    def start(self, task: Task) -> None:
        """Start a task in an idle process."""
        next(worker for worker in self.workers if worker.task is None).start(task)

    def wait(self, receive: Receive) -> list[tuple[Task, Outcome]]:
        """Receive the messages of tasks, for a second or until a task ends; see `Engine.wait`."""
        ended = []
        with deferred_signals():
            if self._deadline is not None and time.monotonic() > self._deadline:
                # The connections stay open: their ends are the ends of the tasks.
                for each in self.workers:
                    if each.process is not None:
                        each.process.kill()

            busy = {worker.connection: worker for worker in self.workers if worker.task is not None}
            for connection in wait(list(busy), SECONDS_TO_WAIT):
                worker = busy[connection]  # type: ignore[index]  # one of those that were given
                task, outcome = worker.task, worker.receive(receive)
                if outcome is not None and task is not None:
                    is_stopped = self._deadline is not None and outcome.kind == "lost"
                    ended.append((task, Outcome("stopped", where=outcome.where) if is_stopped else outcome))
        return ended

    def stop(self) -> None:
        """Ask the running tasks to end; they are killed where they take too long."""
        self._deadline = time.monotonic() + SECONDS_TO_STOP
        for worker in self.workers:
            worker.terminate()

    def close(self) -> None:
        """Kill all processes."""
        for worker in self.workers:
            worker.kill()


class _Worker:
    """One process, started with its first task and, after its death, with the next one."""

    def __init__(self, gpu: str | None) -> None:
        self.gpu = gpu
        self.task: Task | None = None
        self.process: SpawnProcess | None = None
        self.connection: Connection[Any, Any]

    def start(self, task: Task) -> None:
        if self.process is None:
            self.connection, theirs = CONTEXT.Pipe()
            # No daemon, because it decodes photos in processes of its own. It ends when the command does.
            self.process = CONTEXT.Process(target=_serve, args=(theirs, self.gpu, multiprocessing.get_start_method()))
            self.process.start()
            # So that the connection ends with the process.
            theirs.close()
        self.task = task
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
        return outcome

    def _lost(self) -> Outcome:
        assert self.process is not None
        self.process.join(SECONDS_TO_WAIT)
        code = self.process.exitcode
        self.kill()
        self.task = None
        by = f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with code {code}"
        return Outcome("lost", error=f"its process ended {by}", where=socket.gethostname())

    def terminate(self) -> None:
        if self.process is not None and self.task is not None:
            self.process.terminate()

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

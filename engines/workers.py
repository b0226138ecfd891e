"""Tasks in processes beside the command, which live as long as it does: what they import, they import once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NoReturn

from headstart.engines.deferred_signals import deferred_signals
from headstart.engines.task import CommandGoneError, Outcome, Task, perform
from headstart.output.errors import Terminated

# A forked process would inherit threads and locks of libraries in whatever state they are.
CONTEXT = multiprocessing.get_context("spawn")
SECONDS_TO_WAIT = 1.0
# What a task that is asked to end may take to write what it has.
SECONDS_TO_STOP = 15.0


class Workers:
    """Does as many tasks at once as there are processes.

    Args:
        count: Number of processes.
        gpus: The GPUs that they are spread over, as CUDA_VISIBLE_DEVICES names them; every process sees one of them.
    """

    def __init__(self, count: int, gpus: list[str]) -> None:
        self.workers = [_Worker(gpus[place % len(gpus)] if gpus else None) for place in range(count)]
        self._stopping: float | None = None

    def room(self) -> int:
        """Tell how many more tasks can be started."""
        return sum(worker.task is None for worker in self.workers)

    def start(self, task: Task) -> None:
        """Give a task to a process that has none."""
        next(worker for worker in self.workers if worker.task is None).give(task)

    def wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        """Answer what tasks ask, for a second or until one ends; see `Engine`."""
        with deferred_signals():
            return self._wait(answer)

    def _wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        if self._stopping is not None and time.monotonic() > self._stopping:
            for worker in self.workers:
                worker.kill()
        ended = []
        busy = {worker.connection: worker for worker in self.workers if worker.task is not None}
        for connection in wait(list(busy), SECONDS_TO_WAIT):
            worker = busy[connection]  # type: ignore[index]  # one of those that were given
            task, outcome = worker.task, worker.hear(answer)
            if outcome is not None and task is not None:
                stopped = Outcome("stopped", where=outcome.where)
                ended.append((task, stopped if self._stopping is not None and outcome.kind == "lost" else outcome))
        return ended

    def stop(self) -> None:
        """Ask the tasks that run to end; they are killed where they take too long."""
        self._stopping = time.monotonic() + SECONDS_TO_STOP
        for worker in self.workers:
            worker.terminate()

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.kill()


class _Worker:
    """One process, begun when it is given its first task, or the next one after it has died."""

    def __init__(self, gpu: str | None) -> None:
        self.gpu = gpu
        self.task: Task | None = None
        self.process: SpawnProcess | None = None
        self.connection: Connection[Any, Any]

    def give(self, task: Task) -> None:
        if self.process is None:
            self.connection, theirs = CONTEXT.Pipe()
            # No daemon: it decodes photos in processes of its own. It ends when the connection does.
            self.process = CONTEXT.Process(target=_serve, args=(theirs, self.gpu, multiprocessing.get_start_method()))
            self.process.start()
            # So that the connection ends with the process.
            theirs.close()
        self.task = task
        # One that has died in the meantime is noticed when it is heard next.
        with suppress(OSError):
            self.connection.send(task)

    def hear(self, answer: Callable[[Task, Any], Any]) -> Outcome | None:
        """Answer one message; give how the task ended, where that is what it says."""
        assert self.task is not None
        assert self.process is not None
        try:
            message = self.connection.recv()
            if isinstance(message, Outcome):
                self.task = None
                return message
            self.connection.send(_answer(answer, self.task, message))
        except (EOFError, OSError):
            self.process.join(SECONDS_TO_WAIT)
            code = self.process.exitcode
            self.kill()
            self.task = None
            by = f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with code {code}"
            return Outcome("lost", error=f"its process ended {by}", where=socket.gethostname())
        return None

    def terminate(self) -> None:
        if self.process is not None and self.task is not None:
            self.process.terminate()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None


def _answer(answer: Callable[[Task, Any], Any], task: Task, message: Any) -> tuple[Any, Exception | None]:  # noqa: ANN401 - whatever a task asks
    try:
        return answer(task, message), None
    except Exception as error:
        return None, error


def _serve(connection: Connection[Any, Any], gpu: str | None, method: str) -> None:
    """Do tasks until the command that gives them is gone."""
    # Ctrl-C reaches all processes of a terminal; the command says which of its tasks are to end, and how.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    # What tasks begin themselves begins as it does in the command: forked decoders need not import torch again.
    multiprocessing.set_start_method(method, force=True)
    # The command hears of this process's end by the connection's.
    os.register_at_fork(after_in_child=connection.close)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu

    # What is pickled on its way may print a warning.
    lock, doing = threading.RLock(), False

    def ask(message: object) -> Any:  # noqa: ANN401 - whatever is answered
        # Half a message would be waited for, and so would the answer to another thread's question.
        with lock, deferred_signals():
            if not doing:
                return None  # to a thread that outlives its task
            try:
                connection.send(message)
                answer, error = connection.recv()
            except (EOFError, OSError) as gone:
                raise CommandGoneError from gone
        if error is not None:
            raise error
        return answer

    # The command is gone, or asked this process to end between two tasks.
    with suppress(EOFError, OSError, Terminated, CommandGoneError):
        while True:
            task, doing = connection.recv(), True
            try:
                outcome = perform(task, ask)
            except Terminated:
                outcome = Outcome("stopped")
            with lock, deferred_signals():
                doing = False
                connection.send(outcome)
    # Whatever threads a library has left do not keep it.
    os._exit(0)


def _terminate(*_: object) -> NoReturn:
    raise Terminated

"""Tasks in worker processes of this machine."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.engines.perform import Outcome, Task, perform
from headstart.output.errors import Terminated, UserError, reason_of
from headstart.output.processors import limit_processors

# A forked process would inherit threads and locks of libraries in whatever state they are.
SPAWN = multiprocessing.get_context("spawn")
# Time for a process to begin, and for a task that is told to end to write its results so far.
SECONDS_TO_START, SECONDS_TO_STOP = 60.0, 15.0


class Workers:
    """Runs as many tasks at once as there are processes, which live as long as this: each imports libraries once.

    Args:
        count: Number of processes.
        cpus: Processors that each of them uses.
        gpus: The GPUs, as CUDA_VISIBLE_DEVICES names them: each process sees one of them.
        shared: The second argument of the tasks' functions, unless it is None.
    """

    def __init__(self, count: int, cpus: int, gpus: list[str], shared: Any = None) -> None:  # noqa: ANN401 - whatever tasks share
        self.workers = [_Worker(cpus, gpus[index % len(gpus)] if gpus else None) for index in range(count)]
        self.shared = shared

    def has_room(self) -> bool:
        """Return whether a process is idle."""
        return any(worker.task is None for worker in self.workers)

    def start(self, task: Task, log: Path | None) -> None:
        """Start a task in an idle process."""
        next(worker for worker in self.workers if worker.task is None).start(task, log, self.shared)

    def wait(self) -> list[Outcome]:
        """Wait until a task ends."""
        busy = {worker.future: worker for worker in self.workers if worker.task is not None}
        ended, _ = wait(busy, return_when=FIRST_COMPLETED)
        return [busy[future].end() for future in ended]

    def close(self) -> None:
        """End all processes: a running task has some seconds to write what it has, unless a second signal comes."""
        busy = [worker for worker in self.workers if worker.task is not None]
        try:
            for worker in busy:
                worker.send(signal.SIGTERM)
            wait([worker.future for worker in busy], SECONDS_TO_STOP)
        finally:
            for worker in self.workers:
                worker.kill()


class _Worker:
    """One process: a pool of its own, because a pool ends as a whole with one of its processes."""

    def __init__(self, cpus: int, gpu: str | None) -> None:
        self.cpus, self.gpu = cpus, gpu
        self.pool: ProcessPoolExecutor | None = None
        self.number: Future[int] | None = None
        self.task: Task | None = None
        self.log: Path | None = None
        self.future: Future[Outcome]

    def start(self, task: Task, log: Path | None, shared: Any) -> None:  # noqa: ANN401 - whatever tasks share
        try:
            if self.pool is None:
                self.pool = ProcessPoolExecutor(1, SPAWN, _begin, (self.gpu,))
                self.number = self.pool.submit(os.getpid)
            self.future = self.pool.submit(_perform, task, log, shared, self.cpus)
        except BrokenExecutor as error:
            # It was killed while it was idle, or cannot start.
            self.future = Future()
            self.future.set_exception(error)
        except OSError as error:
            raise UserError(
                f"workers: a process cannot be started ({reason_of(error)}); repeat the command, perhaps with fewer "
                "workers"
            ) from error
        self.task, self.log = task, log

    def end(self) -> Outcome:
        """Return how the task has ended."""
        assert self.task is not None
        task, self.task = self.task, None
        try:
            return replace(self.future.result(), task=task)
        except BrokenExecutor:
            self.kill()
            seen = f"; see {self.log}" if self.log is not None else ""
            return Outcome(task, error=f"its process was killed, perhaps for lack of memory{seen}", died=True)
        except Exception as error:
            return Outcome(task, error=f"{type(error).__name__}: {reason_of(error)}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it lives."""
        with suppress(BrokenExecutor, CancelledError, TimeoutError, ProcessLookupError):
            # A signal may come while the process is started.
            if self.pool is not None and self.number is not None:
                # It raises an error where the process is dead, whose number may be another's by now.
                self.pool.submit(int)
                os.kill(self.number.result(SECONDS_TO_START), number)

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.send(signal.SIGKILL)
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            self.pool = self.number = None


# Whether this worker performs a task, which SIGTERM then ends.
_is_busy = False


def _begin(gpu: str | None) -> None:
    """Prepare this worker."""
    # Ctrl-C reaches all processes of a terminal; the command ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    threading.Thread(target=_end_with_command, daemon=True).start()


def _perform(task: Task, log: Path | None, shared: Any, cpus: int) -> Outcome:  # noqa: ANN401 - whatever tasks share
    global _is_busy
    try:
        _is_busy = True
        with limit_processors(cpus):
            return perform(task, log, shared)
    except Terminated:
        # This worker alone was told to end, or nobody waits for the outcome any more.
        return Outcome(replace(task, argument=None), error="it was terminated", died=True)
    finally:
        _is_busy = False


def _terminate(*_: object) -> None:
    # The command would wait for the rest of an outcome that is cut off.
    if _is_busy:
        raise Terminated


def _end_with_command() -> None:
    """End this process as soon as the command is gone, also where that was killed."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()

    deadline = time.monotonic() + SECONDS_TO_STOP
    os.kill(os.getpid(), signal.SIGTERM)
    while _is_busy and time.monotonic() < deadline:
        time.sleep(0.1)
    os._exit(1)

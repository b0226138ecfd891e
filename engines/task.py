"""A task, its messages and its outcome, and the one function by which every engine runs it."""

import io
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol

from headstart.output.errors import Terminated, UserError, is_out_of_memory, reason_of
from headstart.output.parser import mistakes_of_users


@dataclass(frozen=True)
class Task:
    """A call of a function.

    Attributes:
        name: Unique among the tasks.
        function: Its import path, `module:function`; it is called with `argument` and a function that sends messages to
            the command.
        argument: It is pickled on its way to where the task runs.
        folder: The working folder; where it is empty, the one in which the task starts.
    """

    name: str
    function: str
    argument: Any
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class TaskResources:
    """What a task needs of its machine, by which Ray chooses one.

    Attributes:
        cpus: Processors.
        gpus: GPUs; a part of one where several tasks share it.
        memory: Gigabytes.
        reuses_processes: Whether a task may run in the process of an earlier one, with the libraries and networks that
            this has loaded, and with the memory that it has not freed.
    """

    cpus: int = 1
    gpus: float = 0.0
    memory: float | None = None
    reuses_processes: bool = False


@dataclass(frozen=True)
class TaskMessage:
    """A message from a task to the command that started it.

    Attributes:
        kind: `started`, with the name of the machine; `printed`, with a line; or a kind of the task's own.
        content: It is pickled on its way to the command.
    """

    kind: str
    content: Any


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        kind: `done`; `failed` by an error that would come again; `lost` with its process or machine; out of `memory`;
            or `stopped` because the command was.
        result: What the function returned.
        error: What went wrong, one line.
        where: The machine.
        peak_memory: The most bytes that its process has used so far, 0 if unknown.
    """

    kind: Literal["done", "failed", "lost", "memory", "stopped"]
    result: Any = None
    error: str = ""
    where: str = ""
    peak_memory: int = 0

    def require_result(self, name: str) -> Any:  # noqa: ANN401 - whatever the function returns
        """Return the result.

        Args:
            name: The task, for the message.

        Raises:
            UserError: The task is not done.
        """
        if self.kind != "done":
            raise UserError(f"{name}, {self.kind} on {self.where or 'no machine'}: {self.error}")
        return self.result


# Python's message where the system lacks memory for a thread, or has too many of them.
NO_THREAD = "can't start new thread"

# Send a message to the command. Only Ray's tasks wait for the listener's answer and return it.
Send = Callable[[TaskMessage], Any]
# Process a task's message in the command.
Receive = Callable[[Task, TaskMessage], Any]


class Engine(Protocol):
    """Runs tasks, each by `perform`."""

    def room(self) -> int:
        """Return how many more tasks can be started."""

    def start(self, task: Task) -> bool:
        """Start a task; return whether it has begun, and does not wait for a machine."""

    def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        """Receive the messages of tasks, for a second or until a task ends.

        Args:
            receive: Returns the answer to a message; it raises no error.
            ended: The tasks that ended are added to it, so that a signal that stops the command loses none of them.
        """

    def end(self, task: Task) -> None:
        """Ask a running task to end; it is killed where that takes too long. `wait` still returns its outcome."""

    def close(self) -> None:
        """Kill everything that still runs."""


class _LineStream(io.TextIOBase):
    """A stream that passes on whole lines while a task runs; handlers of earlier tasks may still write to it."""

    def __init__(self) -> None:
        self.send_line: Callable[[str], object] | None = None
        self.process = 0
        # Each thread has a line of its own.
        self.rest = threading.local()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if os.getpid() != self.process and self.send_line is not None:
            # A process that the task has forked must not use the task's connection to the command.
            return sys.__stderr__.write(text) if sys.__stderr__ is not None else len(text)

        *lines, self.rest.text = (getattr(self.rest, "text", "") + text.replace("\r", "\n")).split("\n")
        for line in lines:
            if line and self.send_line is not None:
                self.send_line(line)
        return len(text)

    def close(self) -> None:
        """Stay open, for the next task."""

    @contextmanager
    def sending_to(self, send_line: Callable[[str], object]) -> Iterator[None]:
        self.send_line, self.process = send_line, os.getpid()
        try:
            with redirect_stdout(self), redirect_stderr(self):
                yield
        finally:
            try:
                self.write("\n")
            finally:
                self.send_line = None


_LINES = _LineStream()


def perform(task: Task, send: Send) -> Outcome:
    """Run a task, and send what it prints to the command, line by line.

    Args:
        task: The task.
        send: Sends a message to the command.

    Returns:
        How it ended.

    Raises:
        KeyboardInterrupt: It was stopped by Ctrl-C.
        Terminated: It was stopped by SIGTERM.
    """
    host = socket.gethostname()

    def send_line(line: str) -> None:
        send(TaskMessage("printed", line))

    try:
        send(TaskMessage("started", host))
        with _LINES.sending_to(send_line), _working_in(task.folder, host), mistakes_of_users():
            module, name = task.function.split(":")
            result = getattr(import_module(module), name)(task.argument, send)
        return Outcome("done", result, where=host)

    except UserError as error:
        # Another process may have the memory, or fewer tasks beside it.
        kind: Literal["memory", "failed"] = "memory" if is_out_of_memory(error) else "failed"
        return Outcome(kind, error=" ".join(str(error).split()), where=host)
    # Terminated is a SystemExit, but a library's exit is a failure.
    except Terminated:
        raise
    except SystemExit as error:
        return Outcome("failed", error=f"it ended by {error!r}", where=host)
    except Exception as error:
        if is_out_of_memory(error) or NO_THREAD in str(error):
            return Outcome("memory", error=f"memory does not suffice ({reason_of(error)})", where=host)
        for line in traceback.format_exc().splitlines():
            send_line(line)
        return Outcome("failed", error=f"{type(error).__name__}: {reason_of(error)}", where=host)


def _working_in(folder: str, host: str) -> AbstractContextManager[None]:
    """Change to the command's working folder, because paths are relative to it."""
    if not folder:
        return nullcontext()
    if not Path(folder).is_dir():
        raise UserError(f"the working folder {folder!r} is not on {host}; put the same files there")
    return chdir(folder)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer signals that stop a command until the end of the block."""
    # Signals reach the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    received: list[tuple[int, FrameType | None]] = []
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda *signaled: received.append(signaled)) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, handlers[number])
        for first, frame in received[:1]:
            handler = handlers[signal.Signals(first)]
            if callable(handler):
                handler(first, frame)
            elif handler == signal.SIG_DFL:
                signal.raise_signal(first)

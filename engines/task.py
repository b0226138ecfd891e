"""One piece of work, and the one way in which every engine does it."""

from __future__ import annotations

import errno
import io
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from headstart.output.errors import Terminated, UserError, reason_of
from headstart.output.parser import mistakes_of_users

# A task asks the command that started it, wherever that is, and waits for what it says.
Ask = Callable[[Any], Any]


class CommandGoneError(BaseException):
    """The command that started a task is gone; no mistake of the task's own, which its code might take it for."""


@dataclass(frozen=True)
class Task:
    """A function's call.

    Attributes:
        name: Of which there is one among the tasks.
        function: Its import path, `module:function`; it is called with `argument` and what it may ask the command by.
        argument: What is pickled on the way to where it runs.
        folder: The working folder; where it is empty, the one that it finds itself in.
    """

    name: str
    function: str
    argument: Any
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class Started:
    """A task says that it begins, and on which machine."""

    where: str


@dataclass(frozen=True)
class Said:
    """A task has printed a line."""

    line: str


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        kind: `done`; `failed` by a mistake, the same each time; `lost` with its process or machine; out of `memory`;
            or `stopped` because the command was.
        result: What the function gave.
        error: What went wrong, one line.
        where: The machine.
    """

    kind: Literal["done", "failed", "lost", "memory", "stopped"]
    result: Any = None
    error: str = ""
    where: str = ""

    def required(self, name: str) -> Any:  # noqa: ANN401 - whatever the function gives
        """Give the result.

        Args:
            name: The task, for the message.

        Raises:
            UserError: There is none.
        """
        if self.kind != "done":
            raise UserError(f"{name}, {self.kind} on {self.where or 'no machine'}: {self.error}")
        return self.result


class Engine(Protocol):
    """Runs tasks, of which each is done by `perform`."""

    def room(self) -> int:
        """Tell how many more tasks can be started."""

    def start(self, task: Task) -> None:
        """Start a task."""

    def wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        """Answer what tasks ask, for a second or until one ends.

        Args:
            answer: Gives the answer; an exception of its own is raised in the task.

        Returns:
            The tasks that ended.
        """

    def stop(self) -> None:
        """Ask the tasks that run to end; they are waited for as before."""

    def close(self) -> None:
        """End all that runs, and what it ran in."""


class _Lines(io.TextIOBase):
    """A stream that hands on whole lines while a task is done; what holds on to it may write to it ever after."""

    def __init__(self) -> None:
        self.take: Callable[[str], object] | None = None
        self.process = 0
        # Of each thread, lest two share a line.
        self.rest = threading.local()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if os.getpid() != self.process and self.take is not None:
            # A process that the task has forked has no hold on the command, which waits for the task's own words.
            return sys.__stderr__.write(text) if sys.__stderr__ is not None else len(text)
        *lines, self.rest.text = (getattr(self.rest, "text", "") + text.replace("\r", "\n")).split("\n")
        for line in lines:
            if line and self.take is not None:
                self.take(line)
        return len(text)

    def close(self) -> None:
        """Stay open, for the next task."""

    @contextmanager
    def handed_to(self, take: Callable[[str], object]) -> Iterator[None]:
        self.take, self.process = take, os.getpid()
        try:
            with redirect_stdout(self), redirect_stderr(self):
                yield
        finally:
            try:
                self.write("\n")
            finally:
                self.take = None


_LINES = _Lines()


def perform(task: Task, ask: Ask) -> Outcome:
    """Do a task; what it prints is said to the command, line by line.

    Args:
        task: The task.
        ask: By which it asks the command.

    Returns:
        How it ended.

    Raises:
        KeyboardInterrupt: It was stopped by Ctrl-C.
        Terminated: It was stopped by SIGTERM.
        CommandGoneError: Nobody is there to be told.
    """
    where = socket.gethostname()
    try:
        ask(Started(where))
        with _LINES.handed_to(lambda line: ask(Said(line))), _in_folder(task.folder, where):
            module, name = task.function.split(":")
            with mistakes_of_users():
                result = getattr(import_module(module), name)(task.argument, ask)
        return Outcome("done", result, where=where)
    except UserError as error:
        return Outcome("failed", error=" ".join(str(error).split()), where=where)
    except Terminated:
        raise
    except SystemExit as error:
        return Outcome("failed", error=f"it ended by {error!r}", where=where)
    except Exception as error:
        if _is_want_of_memory(error):
            return Outcome("memory", error=f"memory does not suffice ({reason_of(error)})", where=where)
        for line in traceback.format_exc().splitlines():
            ask(Said(line))
        return Outcome("failed", error=f"{type(error).__name__}: {reason_of(error)}", where=where)


def _is_want_of_memory(error: Exception) -> bool:
    """Tell what Python, the system and torch raise where memory does not suffice; torch need not be there."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )


@contextmanager
def _in_folder(folder: str, where: str) -> Iterator[None]:
    """Work in the command's folder, for paths are relative to it."""
    if not folder:
        yield
        return
    if not Path(folder).is_dir():
        raise UserError(f"the working folder {folder!r} is not on {where}; put the same files there")
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

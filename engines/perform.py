"""A task, and how a process performs it."""

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TextIO

from headstart.output.errors import Terminated, UserError, reason_of
from headstart.output.parser import mistakes_of_users

OUT, ERR = 1, 2


@dataclass(frozen=True)
class Task:
    """A call of a function.

    Attributes:
        name: Unique among the tasks; it is shown, and names the log.
        function: Its path, `package.module:function`, which is imported where the task runs.
        argument: Its argument, which can be pickled. What it returns should be small where the task runs in a worker:
            large results belong into files.
    """

    name: str
    function: str
    argument: Any


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        task: The task.
        value: What its function returned.
        error: What went wrong, one line; empty where it succeeded.
        is_mistake: Whether the error is one of the user's, whose text begins with the argument.
        died: Whether its process died, or was told to end.
        seconds: How long it took; 0 where it died.
    """

    task: Task
    value: Any = None
    error: str = ""
    is_mistake: bool = False
    died: bool = False
    seconds: float = 0.0

    def require(self) -> Any:  # noqa: ANN401 - whatever the function returns
        """Return the value.

        Raises:
            UserError: The task failed.
        """
        if self.error:
            raise UserError(self.error if self.is_mistake else f"{self.task.name}: {self.error}")
        return self.value


def perform(task: Task, log: Path | None, shared: Any = None) -> Outcome:  # noqa: ANN401 - whatever tasks share
    """Perform a task in this process.

    Args:
        task: The task.
        log: File to which what it prints is added; None to print as this process does.
        shared: The second argument of its function, unless it is None.

    Returns:
        How it ended, without its argument.

    Raises:
        KeyboardInterrupt: It was stopped by Ctrl-C.
        Terminated: It was stopped by SIGTERM.
    """
    began, outcome = time.monotonic(), Outcome(replace(task, argument=None))
    try:
        with _printing_to(log):
            outcome = replace(outcome, value=_call(task, shared))
    except UserError as error:
        outcome = replace(outcome, error=" ".join(str(error).split()), is_mistake=True)
    except Terminated:
        raise
    except SystemExit as error:
        # A library's exit is no end of the command.
        outcome = replace(outcome, error=f"it ended by {error!r}")
    except Exception as error:
        outcome = replace(outcome, error=f"{type(error).__name__}: {reason_of(error)}")
    return replace(outcome, seconds=time.monotonic() - began)


def _call(task: Task, shared: Any) -> Any:  # noqa: ANN401 - whatever tasks share, and functions return
    """Call the function of a task; print the traceback of an error that is no mistake of the user's."""
    try:
        with mistakes_of_users():
            function = resolve_name(task.function)
            return function(task.argument) if shared is None else function(task.argument, shared)
    except UserError:
        raise
    except Exception:
        traceback.print_exc()
        raise


@contextmanager
def _printing_to(log: Path | None) -> Iterator[None]:
    """Add all that this process prints to a file, also what libraries in C and its children print."""
    if log is None:
        yield
        return

    out, err = _streams()
    with ExitStack() as stack:
        file = stack.enter_context(log.open("ab"))
        for stream, number in ((out, OUT), (err, ERR)):
            before = os.dup(number)
            # In reverse order: what waits in the stream is written to the log.
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, number)
            stack.callback(stream.flush)
            os.dup2(file.fileno(), number)
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        yield


@cache
def _streams() -> tuple[TextIO, TextIO]:
    """Return streams that print wherever this process does, opened once: a library may keep them for the next task."""
    out, err = (open(number, "w", buffering=1, errors="backslashreplace", closefd=False) for number in (OUT, ERR))  # noqa: SIM115
    return out, err

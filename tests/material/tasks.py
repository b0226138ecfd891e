"""Tasks for tests of engines."""

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from headstart.engines.task import Send, TaskMessage
from headstart.output.errors import UserError


def send_and_add(argument: int, send: Send) -> tuple[int, int]:
    """Send three numbers; return the sum, and the process."""
    print(f"adding to {argument}")
    for power in range(3):
        send(TaskMessage("number", 10**power))
    return argument + 111, os.getpid()


def ask_and_add(argument: int, send: Send) -> int:
    """Ask for a number three times; return the sum."""
    answers: list[int] = [send(TaskMessage("question", power)) for power in range(3)]
    return argument + sum(answers)


def fail(argument: str, send: Send) -> None:
    """Fail in a named way."""
    print("about to fail", end="")
    if argument == "user":
        raise UserError("root: there is\n no folder")
    if argument == "defect":
        raise ZeroDivisionError("by nothing")
    if argument == "memory":
        raise MemoryError
    if argument == "memory of torch":
        import torch  # slow, and the other tasks do without it

        torch.empty(2**60)
    if argument == "memory, explained":
        try:
            raise MemoryError
        except MemoryError as error:
            raise UserError("data.batch_size: a batch does not fit") from error
    if argument == "memory of a thread":
        raise RuntimeError("can't start new thread")
    if argument == "network":
        raise ConnectionResetError(104, "Connection reset by peer")
    if argument == "library":
        raise SystemExit(3)


def die_at_first(argument: str, send: Send) -> str:
    """Kill the process that this runs in, unless the file is there already."""
    before = Path(argument).exists()
    Path(argument).touch()
    if not before:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die_beside_a_child(argument: str, send: Send) -> None:
    """Kill the process that this runs in, but not the one that it has forked, which lives as long as the file."""

    def live() -> None:
        while Path(argument).exists():
            time.sleep(0.05)
        Path(argument).with_suffix(".ended").touch()

    multiprocessing.Process(target=live).start()
    os.kill(os.getpid(), signal.SIGKILL)


def end_when_asked(argument: str, send: Send) -> None:
    """Wait to be stopped, and say so then."""
    try:
        send(TaskMessage("progress", "begun"))
        for _ in range(600):
            time.sleep(0.1)
            send(TaskMessage("progress", "still at it"))
    finally:
        send(TaskMessage("progress", "wrote what there was"))


def lack_memory_at_the_end(argument: None, send: Send) -> None:
    """Wait to be stopped, and run out of memory then."""
    send(TaskMessage("progress", "begun"))
    try:
        time.sleep(60)
    except SystemExit as stop:
        raise MemoryError from stop


def refuse_to_end(argument: None, send: Send) -> None:
    """Continue after SIGTERM."""
    send(TaskMessage("progress", "begun"))
    while True:
        with suppress(SystemExit):
            time.sleep(60)


def suspend_itself(argument: None, send: Send) -> None:
    """Suspend the process that this runs in, which then hears nothing but SIGKILL."""
    send(TaskMessage("progress", "begun"))
    os.kill(os.getpid(), signal.SIGSTOP)


class Suspending:
    """An object that suspends the process that receives it."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _suspend, ()


def _suspend() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def give_folder(argument: None, send: Send) -> Any:
    """Return the working folder."""
    return str(Path.cwd())


def print_from_threads(argument: int, send: Send) -> None:
    """Print lines from several threads at once, one of which continues after this."""
    threads = [Thread(target=_print_lines, args=(name, argument)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Thread(target=_print_lines, args=("late", 10 * argument), daemon=True).start()


def _print_lines(name: str, count: int) -> None:
    for number in range(count):
        print(f"{name} {number}")


class Loud:
    """An object that warns when it is pickled."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        print("it is old")
        return str, ("loud",)


def send_what_warns(argument: None, send: Send) -> None:
    """Send something whose pickling prints a line."""
    send(TaskMessage("progress", Loud()))


def log(argument: str, send: Send) -> None:
    """Log by a handler that the first task of a process has made."""
    logger = logging.getLogger(__name__)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler(sys.stdout))
    logger.warning(argument)
    sys.stdout.flush()


def send_much(argument: int, send: Send) -> None:
    """Send what takes several writes, again and again."""
    while True:
        send(TaskMessage("progress", b"x" * argument))


def print_in_a_child(argument: str, send: Send) -> int:
    """Print and warn in a forked process, as decoders do; give how it ended."""

    def speak() -> None:
        print("from the child")
        print("a warning of the child", file=sys.stderr)

    child = multiprocessing.get_context("fork").Process(target=speak)
    child.start()
    child.join()
    print("from the task")
    assert child.exitcode is not None
    return child.exitcode

"""Tasks for tests of engines."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

from headstart.engines.task import Ask
from headstart.output.errors import UserError


def ask_and_add(argument: int, ask: Ask) -> tuple[int, int]:
    """Ask for a number three times; give the sum, and the process."""
    print(f"adding to {argument}")
    return argument + sum(ask(("number", place)) for place in range(3)), os.getpid()


def fail(argument: str, ask: Ask) -> None:
    """Fail in a named way."""
    print("about to fail", end="")
    if argument == "user":
        raise UserError("root: there is\n no folder")
    if argument == "defect":
        raise ZeroDivisionError("by nothing")
    if argument == "answer":
        ask("what nobody answers")
    if argument == "memory":
        raise MemoryError
    if argument == "memory of torch":
        import torch  # slow, and the other tasks do without it

        torch.empty(2**60)
    if argument == "network":
        raise ConnectionResetError(104, "Connection reset by peer")
    if argument == "library":
        raise SystemExit(3)


def die_at_first(argument: str, ask: Ask) -> str:
    """Kill the process that this runs in, unless the file is there already."""
    before = Path(argument).exists()
    Path(argument).touch()
    if not before:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die_beside_a_child(argument: str, ask: Ask) -> None:
    """Kill the process that this runs in, but not the one that it has forked, which lives as long as the file."""

    def live() -> None:
        while Path(argument).exists():
            time.sleep(0.05)
        Path(argument).with_suffix(".ended").touch()

    multiprocessing.Process(target=live).start()
    os.kill(os.getpid(), signal.SIGKILL)


def end_when_asked(argument: str, ask: Ask) -> None:
    """Wait to be stopped, and say so then."""
    try:
        ask("begun")
        for _ in range(600):
            time.sleep(0.1)
            ask("still at it")
    finally:
        ask("wrote what there was")


def give_folder(argument: None, ask: Ask) -> Any:
    """Give the working folder."""
    return str(Path.cwd())


def print_from_threads(argument: int, ask: Ask) -> None:
    """Print lines from several threads at once, one of which goes on after this."""
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
    """What warns when it is pickled."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        print("it is old")
        return str, ("loud",)


def send_what_warns(argument: None, ask: Ask) -> None:
    """Ask something whose pickling prints a line."""
    ask(Loud())


def log(argument: str, ask: Ask) -> None:
    """Log by a handler that the first task of a process has made."""
    logger = logging.getLogger(__name__)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler(sys.stdout))
    logger.warning(argument)
    sys.stdout.flush()


def ask_much(argument: int, ask: Ask) -> None:
    """Send what takes several writes, again and again."""
    while True:
        ask(b"x" * argument)


def print_in_a_child(argument: str, ask: Ask) -> int:
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

"""Functions of tasks, for tests of engines."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from headstart.output.errors import UserError
from headstart.output.processors import count_processors


def square(number: int) -> int:
    """Return the square of a number, and print it."""
    print(f"squaring {number}")
    return number**2


def add(number: int, shared: int) -> int:
    """Return the sum of a number and of what all tasks share."""
    return number + shared


def fail(way: str) -> None:
    """Fail in a named way."""
    print("about to fail")
    if way == "mistake":
        raise UserError("root: there is\n no folder")
    if way == "defect":
        raise ZeroDivisionError("by nothing")
    raise SystemExit(3)


def die(how: tuple[str, int, int]) -> str:
    """Send a signal to the process that this runs in, a number of times; return how often it was tried."""
    folder, times, number = Path(how[0]), how[1], how[2]
    before = len(list(folder.iterdir()))
    (folder / str(before)).touch()
    print(f"attempt {before}")
    if before < times:
        os.kill(os.getpid(), number)
        time.sleep(60)
    return f"{before + 1} attempts"


def show(_: None) -> dict[str, Any]:
    """Return what the process has and sees."""
    time.sleep(0.5)
    seen = {"process": os.getpid(), "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"), "cpus": count_processors()}
    return {**seen, "folder": str(Path.cwd())}


def print_in_all_ways(text: str) -> None:
    """Print by Python, by a handler that the first task has made, by a child, and below Python."""
    logger = logging.getLogger(__name__)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler(sys.stderr))
    print(f"{text} printed")
    logger.warning(f"{text} logged")
    subprocess.run(["echo", f"{text} by a child"], check=True)
    os.write(1, f"{text} below Python\n".encode())


def wait_for_the_end(folder: str) -> None:
    """Wait until told to end, and write so; the process's number is the name of a file."""
    mark = Path(folder) / str(os.getpid())
    mark.write_text("runs")
    try:
        time.sleep(600)
    finally:
        mark.write_text("ended in order")

"""Which task a run of `headstart train` does, known before its options are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from headstart.cli.commands import COMPARISON, TASKS
from headstart.output.errors import UsageError
from headstart.output.usage import configs_of

if TYPE_CHECKING:
    from headstart.cli.task_cli import TaskCLI

OPTION = "--task"


def find_task(options: Sequence[str]) -> str:
    """Find the task that options ask for: that of `--task`, else that of the last configuration that names one.

    Args:
        options: The options of headstart train.

    Raises:
        UsageError: There is no such task.
    """
    task = list(_named(options))[-1]
    if task not in TASKS:
        raise UsageError(f"task: {task!r} is no task; give one of {', '.join(TASKS)}")
    return task


def _named(options: Sequence[str]) -> Iterator[str]:
    yield COMPARISON
    for path in configs_of(options):
        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            # The parser says what is wrong with it.
            continue
        if isinstance(content, dict) and "task" in content:
            yield str(content["task"])
    for option, after in pairwise([*options, ""]):
        if option == OPTION or option.startswith(f"{OPTION}="):
            yield option.partition("=")[2] or after


def command_line(task: str) -> Callable[..., TaskCLI]:
    """Import the command line of a task.

    Args:
        task: One of the tasks.

    Returns:
        What builds it from options, and from what a sweep says of the run in the dashboard.
    """
    module, name = TASKS[task].split(":")
    kind: Callable[..., TaskCLI] = getattr(import_module(module), name)
    return kind

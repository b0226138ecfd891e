"""The task of a run of `headstart train`, found before its options are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from headstart.cli.commands import COMPARISON, TASKS
from headstart.output.errors import UsageError
from headstart.output.import_paths import import_from_working_folder
from headstart.output.shipped_files import configs_of, read_yaml

if TYPE_CHECKING:
    from headstart.cli.task_cli import TaskCLI

OPTION = "--task"


def begin(options: Sequence[str]) -> TaskCLI:
    """Build the command line of the task that options ask for.

    Args:
        options: The options of headstart train.
    """
    import_from_working_folder()
    # Importing takes seconds. Ctrl-C must end the program quietly then, too.
    return command_line(find_task(options))(list(options))


def run_task(options: Sequence[str]) -> dict[str, Any]:
    """Do the task that options ask for.

    Args:
        options: The options of headstart train.

    Returns:
        The content of results.json; `complete` says whether it was done to its end.
    """
    return begin(options).run()


def find_task(options: Sequence[str]) -> str:
    """Find the task that options ask for: that of `--task`, else that of the last configuration that names one.

    Args:
        options: The options of headstart train.

    Raises:
        UsageError: There is no such task.
    """
    task = list(_named(options))[-1]
    if task not in TASKS:
        raise UsageError(f"task: {task!r} is not a task; give one of {', '.join(TASKS)}")
    return task


def _named(options: Sequence[str]) -> Iterator[str]:
    yield COMPARISON
    for path in configs_of(options):
        content = read_yaml(path)
        # The parser reports what is wrong with a file.
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
        Its class, whose arguments are the options and a sweep's values for the dashboard.
    """
    kind: Callable[..., TaskCLI] = resolve_name(TASKS[task])
    return kind

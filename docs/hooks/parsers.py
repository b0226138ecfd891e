"""The parsers of all commands, as the commands build them."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NoReturn
from unittest.mock import patch

import jsonargparse

from headstart.cli.command_line import run_command
from headstart.cli.commands import NAMED, TASKS
from headstart.cli.task import command_line
from headstart.cli.task_parser import TaskParser
from headstart.output.parser import OneLineErrorParser

KINDS = (argparse.ArgumentParser, jsonargparse.ArgumentParser, OneLineErrorParser, TaskParser)


class _Built(BaseException):
    """Stops a command once its parser is complete. It is no Exception, because commands catch those."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def parser_of(command: Callable[[], object]) -> argparse.ArgumentParser:
    """Return the parser of a command, which stops before it reads any option.

    Args:
        command: Runs the command.

    Raises:
        ValueError: The command builds no parser.
    """

    def stop(parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        raise _Built(parser)

    with ExitStack() as stack:
        for kind in KINDS:
            stack.enter_context(patch.object(kind, "parse_args", stop))
        stack.enter_context(patch.object(sys, "path", list(sys.path)))
        try:
            command()
        except _Built as built:
            return built.parser
    raise ValueError(f"{command} builds no parser")


def command_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command of `headstart` by its name, with its parser. Those of `train` are its tasks'."""
    for name in NAMED:
        if name not in ("demo", "train"):
            yield name, parser_of(partial(run_command, name.split(), NAMED))


def task_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the tasks of `headstart train`, with their parsers."""
    for task in TASKS:
        yield task, parser_of(partial(command_line(task), []))

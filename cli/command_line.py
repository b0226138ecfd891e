"""Run a command by its name, with options from the command line as the arguments of its function."""

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import jsonargparse

from headstart.cli.commands import Command, help_lines
from headstart.output.errors import UsageError, UserError
from headstart.output.import_paths import import_from_working_folder
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import print_lines, say
from headstart.output.version import describe_version


def run_command(args: Sequence[str] | None, commands: Mapping[str, Command], prog: str = "headstart") -> None:
    """Run the command that the first arguments name.

    Args:
        args: The command and its options; `sys.argv[1:]` by default.
        commands: The commands by their names.
        prog: The program's name in messages.

    Raises:
        SystemExit: The exit code is 2 for a wrong command or option, and 1 for another mistake of the user.
    """
    arguments = list(sys.argv[1:] if args is None else args)
    with one_line_errors():
        if arguments[:1] in ([], ["--help"], ["-h"]):
            print_lines(help_lines(commands, prog))
            return
        if "--version" in arguments:
            say(describe_version())
            return

        import_from_working_folder()
        # A command has one word or two.
        candidates = [" ".join(arguments[:2]), arguments[0]]
        name = next((each for each in candidates if each in commands), None)
        if name is None:
            close = difflib.get_close_matches(arguments[0], commands, n=1)
            closest = f" (closest: {close[0]})" if close else ""
            raise UsageError(f"{arguments[0]!r} is not a command{closest}; {prog} --help lists them")
        _run(name, commands[name], arguments[len(name.split()) :], prog)


def _run(name: str, command: Command, args: Sequence[str], prog: str) -> None:
    # The name of the program in the help that parsers print.
    sys.argv[0] = f"{prog} {name}"
    try:
        function = _load_function(command.function)
    except ModuleNotFoundError as error:
        if not command.extra:
            raise
        raise UserError(f"{name}: {error}; pip install 'headstart[{command.extra}]'") from error

    if command.first and args and not args[0].startswith("-"):
        args = [f"--{command.first}={args[0]}", *args[1:]]
    if command.function.endswith(":main"):
        function([*command.preset, *args])
    else:
        run_function(function, args, command.positional)


def run_function(function: Callable[..., object], args: Sequence[str] | None = None, positional: bool = True) -> None:
    """Run a function with options from the command line.

    Args:
        function: The function.
        args: The options; `sys.argv[1:]` by default.
        positional: Whether required options are positional arguments.
    """
    with one_line_errors():
        parser = jsonargparse.auto_parser(function, as_positional=positional, parser_class=OneLineErrorParser)
        assert isinstance(parser, OneLineErrorParser)
        arguments = parser.plain_arguments(sys.argv[1:] if args is None else args)
        if "logger" not in {action.dest for action in parser._actions}:
            # Scripts may give this option to every command, also to those without a logger.
            arguments = [arg for arg in arguments if arg.lower() != "--logger=false"]

        options = parser.instantiate(parser.parse_args(arguments))
        options.pop("config", None)
        function(**options)


def _load_function(path: str) -> Callable[..., Any]:
    """Import the function of a command from a path as in `Command.function`."""
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"headstart.{module}"), name or module.rpartition(".")[2])
    return function

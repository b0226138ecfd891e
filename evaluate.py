"""Evaluate what was run: `headstart sample-efficiency runs/demo` scores a run of headstart train again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jsonargparse

if not __package__ and "headstart" not in sys.modules:
    # Run by its path, a door leads to the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parent / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.cli.commands import EVALUATIONS
from headstart.output.import_paths import import_from_working_folder
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.sub_commands import load, placeholder, plain_arguments, without_logger
from headstart.output.version import describe_version

# What these are about comes without a name; what others cannot do without is named like any option.
POSITIONAL = {"sample-efficiency", "leaderboard", "report", "performances", "submissions-report", "list"}
# Options that several values may follow.
LISTS = {"--make"}
# What may come several times without a name.
SEVERAL = {"leaderboard", "report", "submissions-report"}
SWITCHES = {"--overwrite", "--check", "--complete"}


def main(args: Sequence[str] | None = None) -> None:
    """Run one sub-command.

    Args:
        args: The sub-command and its options; those of the process by default.
    """
    given = plain_arguments(sys.argv[1:] if args is None else args, SEVERAL, SWITCHES, LISTS)
    with one_line_errors():
        if "--version" in given:
            print(describe_version())
            return
        import_from_working_folder()
        # Importing what is not asked for would cost seconds, and a list of the sub-commands needs none of them.
        commands: dict[str, Any] = {name: load(command.home) for name, command in EVALUATIONS.items() if name in given}
        chosen = next((arg for arg in given if arg in commands), None)
        if chosen is not None and "logger" not in OneLineErrorParser().add_function_arguments(commands[chosen]):
            given = without_logger(chosen, given)
        jsonargparse.auto_cli(
            commands or {name: placeholder(command.summary) for name, command in EVALUATIONS.items()},
            args=given,
            as_positional=bool(POSITIONAL.intersection(given)),
            description="Evaluate runs, the alignment of representations, and transferability metrics.",
            parser_class=OneLineErrorParser,
        )


if __name__ == "__main__":
    main()

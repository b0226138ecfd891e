"""The commands of `headstart`, by the question that they answer. Reading this list imports none of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        function: Its module in the suite; `module:function` if the function is not called like the module.
        summary: What it does, in a few words; empty for one that the command before it names.
        extra: The optional extra that it needs.
        preset: Options that come before the user's.
        positional: Whether its required options are given without their names.
        first: An option that may come first without its name, beside others that are required, or not required itself.
    """

    function: str
    summary: str = ""
    extra: str = ""
    preset: Sequence[str] = ()
    positional: bool = False
    first: str = ""


COMMANDS = {
    question: {name: Command(**command) for name, command in group.items()}
    for question, group in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")).items()
}
COMMAND_BY_NAME = {name: command for group in COMMANDS.values() for name, command in group.items()}
# The commands of `evaluate.py`.
EVALUATIONS = {name: command for name, command in COMMAND_BY_NAME.items() if command.function.startswith("evaluation.")}

COMPARISON = "comparison"
# The command line of each task of `headstart train`.
TASKS = {
    COMPARISON: "headstart.cli.comparison:ComparisonCLI",
    "source_training": "headstart.cli.source_training:SourceTrainingCLI",
    "target_accuracy": "headstart.cli.target_accuracy:TargetAccuracyCLI",
}


def help_lines(commands: Mapping[str, Command], prog: str) -> list[str]:
    """List commands, those of each question together.

    Args:
        commands: The commands.
        prog: The program that runs them.
    """
    lines = [f"usage: {prog} COMMAND [OPTIONS] | COMMAND --help | --version"]
    for question, group in COMMANDS.items():
        listed = [f"  {name:18}  {each.summary}" for name, each in group.items() if name in commands and each.summary]
        lines += [question, *listed, ""] if listed else []
    return lines[:-1]

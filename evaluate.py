"""Evaluate what was run: `python evaluate.py sample-efficiency runs/demo` scores a run of train.py again."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import jsonargparse

from output.docstrings import first_line
from output.parser import OneLineErrorParser, import_from_working_folder, one_line_errors
from output.version import describe_version

COMMANDS = {
    "sample-efficiency": "evaluation.sample_efficiency:sample_efficiency",
    "leaderboard": "evaluation.leaderboard.leaderboard:leaderboard",
    "report": "evaluation.report.report:report",
    "performances": "evaluation.performances:performances",
    "cka": "evaluation.alignment.cka:cka",
    "cka-search": "evaluation.alignment.cka_search:cka_search",
    "stability": "evaluation.stability.stability:stability",
    "transferability": "evaluation.sources.transferability:transferability",
    "target-selection": "evaluation.target_selection.target_selection:target_selection",
    "list": "evaluation.listing:list_choices",
}
# What these are about comes without a name; what others cannot do without is named like any option.
POSITIONAL = {"sample-efficiency", "leaderboard", "report", "performances", "list"}
# What may come several times without a name.
SEVERAL = {"leaderboard"}


def main(args: Sequence[str] | None = None) -> None:
    """Run one sub-command.

    Args:
        args: The sub-command and its options; those of the process by default.
    """
    given = _joined([_underscored(arg) for arg in (sys.argv[1:] if args is None else args)])
    with one_line_errors():
        if "--version" in given:
            print(describe_version())
            return
        import_from_working_folder()
        # Importing what is not asked for would cost seconds, and a list of the sub-commands needs none of them.
        jsonargparse.auto_cli(
            {name: _load(place) if name in given else _placeholder(place) for name, place in COMMANDS.items()},
            args=given,
            as_positional=bool(POSITIONAL.intersection(given)),
            description="Evaluate runs, the alignment of representations, and transferability metrics.",
            parser_class=OneLineErrorParser,
        )


def _underscored(arg: str) -> str:
    """Let options be written with dashes, too; what follows a dot may be a name of the user's own."""
    name = re.split("[.=]", arg, maxsplit=1)[0]
    return f"--{name[2:].replace('-', '_')}{arg.removeprefix(name)}" if name.startswith("--") else arg


def _joined(args: list[str]) -> list[str]:
    """Make one list of several folders that a command is about."""
    if not SEVERAL.intersection(args[:1]):
        return args
    pairs = list(pairwise(args))
    # An option without an equals sign has its value behind it.
    free = [arg for before, arg in pairs if not arg.startswith("--") and ("=" in before or not before.startswith("--"))]
    if len(free) < 2:
        return args
    others = [arg for before, arg in pairs if arg.startswith("--") or (before.startswith("--") and "=" not in before)]
    return [args[0], json.dumps(free), *others]


def _load(place: str) -> Callable[..., Any]:
    module, name = place.split(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _placeholder(place: str) -> Callable[[], None]:
    """Stand in for a sub-command in the list of all."""

    def command() -> None: ...

    command.__doc__ = first_line(*place.split(":"))
    return command


if __name__ == "__main__":
    main()

"""Sub-commands that are found by their names, and arguments as users write them and as parsers know them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from itertools import pairwise, takewhile
from typing import Any

from headstart.output.errors import UsageError

LOGGER = "--logger"


def plain_arguments(
    args: Sequence[str], several: Collection[str], switches: Collection[str], lists: Collection[str] = ()
) -> list[str]:
    """Write arguments as the parser knows them.

    Args:
        args: The sub-command and its options, which may be written with dashes for underscores.
        several: Sub-commands that are about several folders, which become one list.
        switches: As for `switched_on`.
        lists: Options that several values may follow, which become one list.
    """
    return _joined(switched_on(_listed([_underscored(arg) for arg in args], lists), switches), several)


def _listed(args: list[str], lists: Collection[str]) -> list[str]:
    """Make one list of several values behind an option."""
    for place, arg in enumerate(args):
        if arg in lists:
            values = list(takewhile(lambda each: not each.startswith("--"), args[place + 1 :]))
            if len(values) > 1:
                rest = _listed(args[place + 1 + len(values) :], lists)
                return [*args[:place], f"{arg}={json.dumps(values)}", *rest]
    return args


def switched_on(args: Sequence[str], switches: Collection[str]) -> list[str]:
    """Give switches the value that they need not be given.

    Args:
        args: Arguments.
        switches: Options that are true where no value follows.
    """
    return [
        f"{arg}=true" if arg in switches and after.lower() not in ("true", "false") else arg
        for arg, after in pairwise([*args, ""])
    ]


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Write options that were given from Python, by their names, as a parser reads them from the command line."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, default=str) for name, value in options.items()
    }
    return [f"--{name}={text}" for name, text in texts.items()]


def _underscored(arg: str) -> str:
    """Let options be written with dashes, too; what follows a dot may be a name of the user's own."""
    name = re.split("[.=]", arg, maxsplit=1)[0]
    return f"--{name[2:].replace('-', '_')}{arg.removeprefix(name)}" if name.startswith("--") else arg


def _joined(args: list[str], several: Collection[str]) -> list[str]:
    """Make one list of several folders that a command is about."""
    if not args or args[0] not in several:
        return args
    pairs = list(pairwise(args))
    # An option without an equals sign has its value behind it.
    free = [arg for before, arg in pairs if not arg.startswith("--") and ("=" in before or not before.startswith("--"))]
    if len(free) < 2:
        return args
    others = [arg for before, arg in pairs if arg.startswith("--") or (before.startswith("--") and "=" not in before)]
    return [args[0], json.dumps(free), *others]


def without_logger(name: str, args: Sequence[str]) -> list[str]:
    """Take `--logger=false` from the options of a command that mirrors nothing: it asks for what is so.

    Args:
        name: The command.
        args: Its arguments.

    Raises:
        UsageError: It is to mirror.
    """
    given = [(arg, after) for arg, after in pairwise([*args, ""]) if _is_logger(arg)]
    values = [after if arg == LOGGER else arg.partition("=")[2] for arg, after in given]
    for value in values:
        if value.lower() != "false":
            raise UsageError(
                f"logger: {value or 'nothing'} given, but {name} mirrors nothing in Weights & Biases; give false, or "
                "leave it out"
            )
    return [arg for before, arg in pairwise(["", *args]) if not _is_logger(arg) and before != LOGGER]


def _is_logger(arg: str) -> bool:
    return arg.partition("=")[0] == LOGGER


def load(place: str) -> Callable[..., Any]:
    """Import the function of a sub-command, `module:function`."""
    module, name = place.split(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def placeholder(summary: str) -> Callable[[], None]:
    """Stand in for a sub-command in the list of all."""

    def command() -> None: ...

    command.__doc__ = summary
    return command

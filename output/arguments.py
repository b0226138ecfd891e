"""Arguments as users write them, and as parsers read them."""

import argparse
import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, get_args, get_origin


def plain_arguments(args: Sequence[str], actions: Sequence[argparse.Action]) -> list[str]:
    """Write arguments as a parser reads them.

    A switch needs no value. Several values of a list may follow its option,
    or stand without one if the command takes a list without its name. What follows `--` is no option.

    Args:
        args: The arguments as the user wrote them.
        actions: The parser's actions.
    """
    options = {option: action for action in actions for option in action.option_strings}
    named: list[str] = []
    free: list[str] = []
    rest = deque(args)
    while rest:
        arg = rest.popleft()
        if arg == "--":
            named.append(arg)
            free.extend(rest)
            break
        if not arg.startswith("--"):
            if any(isinstance(action, argparse._SubParsersAction) for action in actions):
                # The parser of a subcommand reads its own arguments.
                return [*named, arg, *rest]
            free.append(arg)
            continue

        action = options.get(arg)
        if "=" in arg or (action is not None and action.nargs == 0):
            named.append(arg)
            continue

        values: list[str] = []
        while rest and not rest[0].startswith("--") and _takes(action, values, rest[0]):
            values.append(rest.popleft())
        if not values and _kind(action) is bool:
            values = ["true"]
        named.append("=".join([arg, *([json.dumps(values) if len(values) > 1 else values[0]] if values else [])]))

    positional = next((action for action in actions if not action.option_strings), None)
    if len(free) > 1 and _takes_list(_kind(positional)):
        free = [json.dumps(free)]
    return [*named, *free]


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return options that were given from Python, by their names, as a parser reads them from the command line."""
    texts = {
        name: str(value) if isinstance(value, str | PurePath) else json.dumps(value, default=str)
        for name, value in options.items()
    }
    return [f"--{name}={text}" for name, text in texts.items()]


def _takes(action: argparse.Action | None, values: Sequence[str], text: str) -> bool:
    """Return whether a text is one more value of an option."""
    kind = _kind(action)
    if kind is bool:
        return not values and text.lower() in ("true", "false")
    return not values or _takes_list(kind)


def _kind(action: argparse.Action | None) -> Any:  # noqa: ANN401 - a type
    return getattr(action, "_typehint", None)


def _takes_list(kind: Any) -> bool:  # noqa: ANN401 - a type
    return get_origin(kind) is list or any(get_origin(each) is list for each in get_args(kind))


def expand_home(chosen: str | Path) -> Path:
    """Return a path with the home folder for a leading `~` or `~name`; an unknown name stays."""
    return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for the name of nobody

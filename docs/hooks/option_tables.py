"""Tables of options: what a parser takes, with types, defaults and help."""

import argparse
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from os.path import commonprefix
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

# Options of every parser; the first page of the reference explains them once.
COMMON = {"help", "print_config"}
LONG_DEFAULT = 40
SPECIAL = re.compile(r"[*|]")


def tables(parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    """Yield the lines of a parser's options: a table of arguments, one of options, and one for each nested group.

    Args:
        parser: The parser.
        level: Level of the headings.
    """
    arguments, options, nested = [], [], []
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if _is_shown(action)]
        if prefix := ".".join(commonprefix([str(action.dest).split(".")[:-1] for action in actions])):  # noqa: RUF071 - of lists
            nested.append((prefix, _sentence(str(group.title)), actions))
        else:
            arguments += [action for action in actions if not action.option_strings]
            options += [action for action in actions if action.option_strings]

    heads: list[tuple[str, str, list[argparse.Action]]] = [("Arguments", "", arguments), ("Options", "", options)]
    heads += [(f"`--{name}`", text, actions) for name, text, actions in nested]
    for title, text, actions in heads:
        if actions:
            yield from (f"{'#' * level} {title}", "", *([text, ""] if text else []))
            yield from table(("option", "type", "default", "meaning"), map(_row, actions))


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all subcommands, by their words."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                below = subcommands(each)
                found |= {f"{name} {words}": leaf for words, leaf in below.items()} or {name: each}
    return found


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        head: Titles of the columns.
        rows: The cells, in Markdown.
    """
    head = list(head)
    yield f"| {' | '.join(head)} |"
    yield "| " + " | ".join("---" for _ in head) + " |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def cell(text: object) -> str:
    """Return a text as a cell of a table: on one line, with what Markdown reads otherwise escaped outside of code."""
    line = " ".join(str(text or "").split())
    parts = re.split(r"(``?[^`]+``?)", line)
    return "".join(
        part if part.startswith("`") else SPECIAL.sub(r"\\\g<0>", part).replace("<", "&lt;") for part in parts
    )


def code(value: object) -> str:
    """Return a value as code in a cell; nothing for an empty text."""
    text = " ".join(str(value).split())
    return f"`{text}`" if text else ""


def type_name(hint: Any) -> str:  # noqa: ANN401 - a type
    """Return a type as a person writes it: without modules, constraints and the quotes of literals."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is None or inspect.isfunction(hint):
        return ""
    if origin is Annotated:
        return type_name(args[0])
    if origin is Literal:
        return " | ".join(map(str, args))
    if origin in (Union, UnionType):
        return " | ".join(map(type_name, args))
    if args:
        return f"{origin.__name__}[{', '.join('...' if each is ... else type_name(each) for each in args)}]"
    return "None" if hint is NoneType else str(getattr(hint, "__name__", hint))


def default_text(value: object) -> str:
    """Return a default as YAML has it; nothing where there is none."""
    if value is argparse.SUPPRESS:
        return ""
    try:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
    except TypeError:
        text = str(value)
    return text if len(text) <= LONG_DEFAULT else f"{text[:LONG_DEFAULT]}…"


def _is_shown(action: argparse.Action) -> bool:
    is_help = action.dest in COMMON or str(action.dest).endswith(".help") or action.help == argparse.SUPPRESS
    is_group = action.metavar == "CONFIG" and action.default == argparse.SUPPRESS
    is_link = any("-->" in name for name in action.option_strings)
    return not (is_help or is_group or is_link or isinstance(action, argparse._SubParsersAction))


def _row(action: argparse.Action) -> list[str]:
    name = action.option_strings[0] if action.option_strings else str(action.dest)
    name = next((each for each in action.option_strings if each.startswith("--")), name)
    hint = getattr(action, "_typehint", None) or action.type
    shown = " | ".join(map(str, action.choices)) if action.choices else type_name(hint)
    is_required = action.nargs not in ("?", "*") and (action.required or not action.option_strings)
    has_none = action.dest == "config"
    default = "required" if is_required else "" if has_none else code(default_text(action.default))
    text = "" if action.help is None else str(action.help).replace(" (default: %(default)s)", "")
    return [code(name), code(shown), default, cell(text)]


def _sentence(title: str) -> str:
    """Return the title of a group of options as a sentence, nothing where it names its class alone."""
    return "" if title.startswith("<class") else f"{' '.join(title.split()).rstrip(':.')}."

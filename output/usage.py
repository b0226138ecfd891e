"""Messages about wrong options: the whole name of the option, what is wrong, and the closest name, in one line."""

import argparse
import difflib
import re
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import yaml

from headstart.output.class_options import class_mistake, missing_file, suggest_class
from headstart.output.errors import broken_yaml
from headstart.output.shipped_files import configs_of, read_yaml

WORDS = {
    "bool": "true or false",
    "dict": "a mapping, written '{a: b}'",
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    **dict.fromkeys(("list", "tuple", "Iterable", "Sequence"), "a list, written '[a, b]'"),
    "Seed": "a whole number from 0 to 4294967295",
    "PositiveInt": "a whole number from 1",
    "NonNegativeInt": "a whole number from 0",
    "PositiveFloat": "a number above 0",
    "NonNegativeFloat": "a number from 0",
    "ClosedUnitInterval": "a number from 0 to 1",
    "OpenUnitInterval": "a number above 0 and below 1",
}
REQUIRED = "it is required, and not given"
# Patterns by which messages of jsonargparse name the option, an unknown option, its class, and the value.
KEY = re.compile(r'Parser key "([\w.-]+)"(?: element \d+)?: |(?:argument )?--([\w.]+): |.*required: ([^\s,]+)')
UNKNOWN = re.compile(r"(?:Group '([\w.]+)' does not accept option|Option|unrecognized arguments: --) ?'?([^\s='\"]+)")
OWNER = re.compile(r"given class_path '([\w.]+)'|value: Namespace\(class_path='([\w.]+)'")
LINKED = re.compile(
    r'argument (?:\w+\()?(?P<by>[\w.]+)\)? --> (?P<name>[\w.]+): |Linked "([\w.]+)" must be given via "([\w.]+)"'
)
# A mistake in an option of a class that is one of several kinds; the others are not what was meant.
OF_CALLABLE = re.compile(
    r".*expects a function or a callable class: ([\w.]+): ((?:expected|there is no such option).*?)"
    r"(?:\. Got| Given) value.*?class_path='([\w.]+)'"
)
PATH = re.compile(r".*(?:class_path[ =]'|Import path |class, but |^\")((?:\w+\.)+\w+)")
VALUE = re.compile(
    r".*(?:[vV]alue: (?:NestedArg\(.*val=)?|base 10: |to float: |, not |string: |Not of type \w+: )"
    r"(.*?)(?: does not conform.*|\))?"
)
# A value in place of a class, as messages about mappings, paths and files have it.
NO_CLASS = re.compile(
    r"Expected a dot import path string: ([A-Za-z_]\w*)|path but (\S+) either not.* Unexpected import path"
    r"|Config file loop detected: (.*?) ->|sub-config file (.*?\.csv): "
)
# A value in place of the options of a group.
VALUE_FOR_GROUP = re.compile(r".*?Unable to load config '(.*?)' - Parser key \"[\w.]+\": Unable to load config")
# Options that a parser knows beside those with a default.
BESIDE = ("class_path", "config", "dict_kwargs", "help", "init_args", "print_config", "version")


class OptionMistake(argparse.ArgumentError):
    """A mistake in an option of a class, which the parser of the class found.

    Args:
        name: The option, as the class names it.
        reason: The mistake.
        closest: The known option with the closest name; empty if there is none.
        owners: Import paths of the classes around the option, from the innermost to the outermost.
        options: Names of the options that the class has.
        own: The option as the innermost class names it; by default `name`.
    """

    def __init__(
        self,
        name: str,
        reason: str,
        closest: str = "",
        owners: tuple[str, ...] = (),
        options: Sequence[str] = (),
        own: str = "",
    ) -> None:
        super().__init__(None, f"{name}: {reason}")
        self.name, self.reason, self.closest, self.owners = name, reason, closest, owners
        self.options, self.own = options, own or name


def explain(
    text: str, nested: OptionMistake | None, types: dict[str, Any], known: Sequence[str], args: Sequence[str]
) -> OptionMistake:
    """Return a mistake by the option's name, as far as this parser knows it, and the reason.

    Args:
        text: The parser's message, in one line.
        nested: The mistake that the parser of a class found in one of its options.
        types: Types of options by their names.
        known: Names of all options, including those of classes.
        args: The command's arguments.
    """
    key = KEY.match(text)
    name = next(filter(None, key.groups()), "") if key else ""
    if nested is None and (meant := OF_CALLABLE.match(text)):
        nested = OptionMistake(meant[1], meant[2])

    if nested:
        return _around(name, text, nested)
    if linked := LINKED.match(text):
        name, by = linked["name"] or linked[3], linked["by"] or linked[4]
        return OptionMistake(name, f"it follows from {by}, and cannot be given")
    if stray := re.fullmatch(r"unrecognized arguments: ([^-]\S*).*", text):
        return OptionMistake("", f"{stray[1]!r} is no option; options are written --name=value")
    if unknown := UNKNOWN.match(text):
        return _unknown(".".join(filter(None, unknown.groups())), known)

    options = _beginnings(_options_of(name, known))
    if options and (value := VALUE_FOR_GROUP.match(text)):
        reason = f"expected its options, written --NAME.{options[0]}=VALUE, not {value[1]}; it has {', '.join(options)}"
        return OptionMistake(name, missing_file(value[1]) or reason)

    if "expected one argument" in text:
        name = next((arg[2:] for arg in args if "=" not in arg and arg.startswith((f"--{name}.", f"--{name}"))), name)
        return OptionMistake(name, f"expected a value, written --{name}=VALUE")
    if "required: " in text:
        choices = _leaves(types.get(name), "")
        is_choice = all(get_origin(leaf) is Literal for leaf in choices)
        return OptionMistake(name, f"it is required; give {_describe(choices)}" if is_choice else REQUIRED)
    return OptionMistake(name, _reason(text[key.end() :] if key else text, types.get(name.removesuffix(".help"))))


def _around(name: str, text: str, nested: OptionMistake) -> OptionMistake:
    """Return a mistake in an option of a class by the name of the option that takes the class."""
    owner = (match := OWNER.search(text)) and (match[1] or match[2])
    is_first = owner and not nested.owners and nested.reason.endswith("such option")
    reason = nested.reason + (f" of {owner}" if is_first else "")
    if is_first and not nested.closest:
        reason += f"; it has {', '.join(_beginnings(nested.options)) or 'no options'}"

    closest = nested.closest and f"{name}.{nested.closest}".lstrip(".")
    owners = (*nested.owners, *([owner] if owner else []))
    return OptionMistake(f"{name}.{nested.name}".lstrip("."), reason, closest, owners, nested.options, nested.own)


def _unknown(name: str, known: Sequence[str]) -> OptionMistake:
    """Return the mistake of an option that there is not, among those of its group if it has one."""
    group = name
    while group and not (options := _options_of(group, known)):
        group = group.rpartition(".")[0]
    closest, inner_name = _closest(name, known), name.removeprefix(f"{group}.")
    return OptionMistake(name, "there is no such option", closest, (), options if group else known, inner_name)


def whole_name(mistake: OptionMistake, args: Sequence[str]) -> OptionMistake:
    """Return a mistake with the option's whole name: the key in a mapping of classes is known from the arguments alone.

    Args:
        mistake: The mistake.
        args: The command's arguments.
    """
    owners = {_last(owner) for owner in mistake.owners}
    options = _given(args, owners)
    fitting = []
    for option in options:
        option_name, _, value = option.replace(".init_args.", ".").partition("=")
        # A mapping that is wrong as a whole is no option in it.
        is_value = value != "" and value in mistake.reason and not mistake.reason.endswith("}")
        if mistake.name in _shortened(option_name)[:-1] or (is_value and option_name.startswith(f"{mistake.name}.")):
            fitting.append((not is_value, option_name))
    name = min(fitting, key=lambda fit: fit[0])[1] if fitting else mistake.name

    is_null = any(option.endswith(("=null", "=None")) for option in options)
    if mistake.reason.endswith(", not null") and not is_null:
        # The option of a class was left out. Only the class tells which key of a mapping has it.
        parent, _, last = name.rpartition(".")
        keys = [
            key for key, _, value in (option.partition("=") for option in options) if value and _last(value) in owners
        ]
        name = next((f"{key}.{last}" for key in keys if parent in _shortened(key)), name)
        return OptionMistake(name, REQUIRED)
    # A key that the parser does not know stands before the last part.
    is_longer = mistake.closest and name != mistake.name
    closest = f"{name.rpartition('.')[0]}.{_last(mistake.closest)}" if is_longer else mistake.closest
    reason = mistake.reason.replace("--NAME.", f"--{name}.")
    named = OptionMistake(name, reason, closest, (), mistake.options, mistake.own)
    return _with_others(named, options) if mistake.reason.startswith("there is no such option") else named


def unknown_group(args: Sequence[str], known: Sequence[str]) -> OptionMistake | None:
    """Return the mistake of an empty group in a configuration file that there is not, which no value leads to.

    Args:
        args: The command's arguments.
        known: Names of all options.
    """
    contents = [content for path in configs_of(args) if isinstance(content := read_yaml(path), dict)]
    empty = [str(key) for content in contents for key, value in content.items() if value == {}]
    unknown = next((key for key in empty if key not in {*_beginnings(known), *BESIDE}), None)
    return None if unknown is None else _unknown(unknown, known)


def file_mistake(text: str, args: Sequence[str]) -> str:
    """Return what is wrong with a configuration file as a whole; empty if the message is about something else."""
    for path in configs_of(args):
        content = read_yaml(path)
        if text.startswith("Problems parsing config") and isinstance(content, yaml.YAMLError):
            return f"config: {path} cannot be read ({broken_yaml(content)})"
        if text.startswith("Unexpected config") and not isinstance(content, dict):
            return f"config: expected a mapping of options in {path}, such as 'data: ...'"
    return ""


def _reason(text: str, kind: Any) -> str:  # noqa: ANN401 - a type
    if file := re.search(r"Invalid content in sub-config file (.*?): (.*?)(?= - Expected a |$)", text):
        return f"{file[1]} cannot be read ({broken_yaml(file[2])})"
    of_type = re.search(r"Not of type (\w+): (.*?)(?= - Expected a |$)", text)
    if of_type and of_type[1] not in WORDS:
        # The suite's own types, such as the names of metrics, raise messages of their own.
        return of_type[2]
    text = text.partition(" Subclass types expect")[0]
    named = NO_CLASS.search(text) or PATH.match(text) or VALUE.fullmatch(text)
    if kind is None or not named:
        return text

    container = get_origin(kind)
    is_other = text.startswith("Expected a ") and f"'{getattr(container, '__name__', '')}'" not in text
    if container in (dict, list) and (of_type or is_other):
        # The message is about one item.
        kind = get_args(kind)[-1]

    value = next(filter(None, named.groups())).strip("'\"")
    value = {"None": "null", "NoneType": "null"}.get(value, value)
    leaves = _leaves(kind, value)
    bases = [leaf for leaf in leaves if isinstance(leaf, type) and leaf.__name__ not in WORDS]
    return (bases and class_mistake(value, bases, len(bases) == len(leaves))) or (
        f"expected {_describe(leaves)}{suggest_class(value) if bases and value != 'null' else ''}, not {value}"
    )


def _describe(leaves: list[Any]) -> str:
    """Return in words what an option takes."""
    choices = [str(choice) for leaf in leaves if get_origin(leaf) is Literal for choice in get_args(leaf)]
    kinds = [get_origin(leaf) or leaf for leaf in leaves if get_origin(leaf) is not Literal]
    words = [WORDS.get(kind.__name__, f"a {kind.__name__} by its import path") for kind in kinds]
    return " or ".join(dict.fromkeys([*words, *([f"one of {', '.join(choices)}"] if choices else [])]))


def _leaves(kind: Any, value: str) -> list[Any]:  # noqa: ANN401 - a type
    """Return the types that an option takes, without None; those of the items where a list was given."""
    outer, inner = getattr(get_origin(kind), "__name__", ""), get_args(kind)
    if outer in ("Union", "UnionType"):
        return [leaf for part in inner if part is not NoneType for leaf in _leaves(part, value)]
    takes_class = outer == "dict" and re.fullmatch(r"[A-Za-z_][\w.]*", value) and _takes_classes(inner[-1])
    is_of_items = (outer == "list" and value[:1] + value[-1:] == "[]") or takes_class or outer == "Callable"
    return _leaves(inner[-1], value) if is_of_items else [kind]


def _takes_classes(kind: Any) -> bool:  # noqa: ANN401 - a type
    """Return whether the items of a mapping are objects of classes that are named."""
    return any(isinstance(leaf, type) and leaf.__name__ not in WORDS for leaf in _leaves(kind, ""))


def _beginnings(names: Sequence[str]) -> list[str]:
    """Return the first parts of names of options, without duplicates."""
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


def _options_of(group: str, known: Sequence[str]) -> list[str]:
    """Return the names of a group's options within the group."""
    return [name.removeprefix(f"{group}.") for name in known if name.startswith(f"{group}.")]


def _given(args: Sequence[str], owners: set[str]) -> list[str]:
    """Return all options `name=value`: of the command line, in mappings there, and in configuration files."""
    contents = [content for path in configs_of(args) if isinstance(content := read_yaml(path), dict)]
    options = [option for content in contents for option in _flat(content, owners)]
    for arg in (arg for arg in args if arg.startswith("--")):
        name, _, value = arg.removeprefix("--").partition("=")
        mapping = read_yaml(value, is_file=False) if value.startswith("{") else None
        options += _flat(mapping, owners, name) if isinstance(mapping, dict) else [arg[2:]]
    return options


def _with_others(mistake: OptionMistake, options: Sequence[str]) -> OptionMistake:
    """Return a mistake of an unknown option with all others that its class, or the command, does not know either."""
    around, inside = mistake.name.removesuffix(mistake.own), list[str]()
    for option_name in (option.partition("=")[0].replace(".init_args.", ".") for option in options):
        if around and option_name in (around.rstrip("."), f"{around}class_path"):
            # The options of a class that was chosen before are dropped.
            inside = []
        elif option_name.startswith(around):
            inside.append(option_name.removeprefix(around))
    known_names = {*_beginnings(mistake.options), *BESIDE}
    unknown = [name for name in _beginnings(inside) if name and name not in known_names]
    if len(unknown) < 2:
        return mistake
    closest = [f"{around}{close}" for name in unknown if (close := _closest(name, mistake.options))]
    reason = mistake.reason.replace("there is no such option", "there are no such options")
    return OptionMistake(", ".join(f"{around}{name}" for name in unknown), reason, ", ".join(closest))


def _closest(name: str, known: Sequence[str]) -> str:
    """Return the known option whose name is closest; empty if none is close."""
    options = known if "." in name else {*known, *_beginnings(known)}
    close = difflib.get_close_matches(name, options, n=1)
    return close[0] if close and close[0] != name else ""


def _flat(content: Any, owners: set[str], name: str = "") -> Iterator[str]:  # noqa: ANN401 - whatever YAML holds
    """Yield a configuration as options `name=value`, without those of classes other than the owners."""
    if not isinstance(content, dict) or not content:
        yield f"{name}={content}"
    elif not owners or "class_path" not in content or _last(str(content["class_path"])) in owners:
        for key, value in content.items():
            yield from _flat(value, owners, f"{name}.{key}" if name else str(key))


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _shortened(name: str) -> list[str]:
    """Return an option's name without one of its parts, for every part but the first."""
    parts = name.split(".")
    return [".".join(parts[:index] + parts[index + 1 :]) for index in range(1, len(parts))]

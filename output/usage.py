"""What jsonargparse finds wrong with an option, in the user's words and in one line."""

from __future__ import annotations

import argparse
import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from headstart.output.class_help import LISTS
from headstart.output.errors import broken_yaml
from headstart.output.import_paths import OWN
from headstart.output.shipped_files import find_configurations

WORDS = {
    "NoneType": "null",
    "bool": "true or false",
    "dict": "a mapping, written '{a: b}'",
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    **dict.fromkeys(("list", "tuple", "Iterable", "collections.abc.Iterable"), "a list, written '[a, b]'"),
    "PositiveInt": "a whole number from 1",
    "NonNegativeInt": "a whole number from 0",
    "PositiveFloat": "a number above 0",
    "NonNegativeFloat": "a number from 0",
    "ClosedUnitInterval": "a number from 0 to 1",
    "OpenUnitInterval": "a number above 0 and below 1",
}
# What jsonargparse says, each in one line: where a value is wrong, and that it is of none of several types.
KEY = re.compile(r'Parser key "(?P<key>[^"]*)"(?: element \d+)?: ')
CLASS = re.compile(r"Problem with given class_path '([^']*)': |Got value: Namespace\(class_path='([^']*)'")
BROKEN = re.compile(r"Problems parsing config: (.*)")
BROKEN_FILE = re.compile(r"Invalid content in sub-config file (.*?): (.*?)(?= - Expected a |$)")
CALLABLE = re.compile(r"Type \S.* expects a function or a callable class: ")
UNKNOWN = re.compile(
    r"(?:Group '(?P<group>[\w.]+)' does not accept option|Option|unrecognized arguments: --) ?'?(?P<name>[^\s='\"]+)"
)
HELP = re.compile(r"--(?P<name>[\w.]+\.help): (?P<reason>.*)")
NO_VALUE = re.compile(r"argument (?:-\w/)?--(?P<name>[\w.]+)(?:/--\S+)?: expected one argument")
REQUIRED = re.compile(r"the following arguments are required: (?P<name>[^\s,]+)")
UNION = re.compile(
    r"(?:- .*? - )?Does not validate against any of the Union subtypes Subtypes: .*? Errors: - (?P<errors>.*) "
    r"Given value type: <class '[\w.]+'> Given value: (?:NestedArg\(key='[^']*', val='?)?(?P<value>.*?)(?:'?\))?"
)
WHOLE = (
    (r"unrecognized arguments: (\S*).*", r"'\1' is no option; options are written --name=value"),
    (r"argument (?:\w+\()?([\w.]+)\)? --> ([\w.]+): .*", r"\2: it follows from \1, and cannot be given"),
    (r'Linked "([\w.]+)" must be given via "([\w.]+)"\.', r"\1: it follows from \2, and cannot be given"),
    (r"argument (?:-\w/)?--?([\w.]+): (.*)", r"\1: \2"),
    (r"argument subcommand: invalid choice: ('.*?') \(choose from (.*)\)", r"\1 is no command; there are \2"),
    (r"File does not exist: (.*)", r"there is no file \1"),
    (r"Path is not a file: (.*)", r"\1 is no file"),
    (r"Unable to load config '(.*?)'.*", r"expected a mapping or a file that holds one, not \1"),
)
# What is wrong with a class or function that is there.
OF_CLASSES = (
    (r"""["']([\w.]+)["'] is not a subclass of (\w+)""", r"\1 is no \2"),
    (r"Expected '([\w.]+)' to be a subclass of <class '(\w+)'>", r"\1 is no \2"),
    (
        r"Expected '([\w.]+)' to be a function that returns <class '(\w+)'>",
        r"\1 does not say that it returns a \2; annotate it with -> \2",
    ),
    (
        r"'[\w.]+' object has no attribute '__name__'.* value: (\S+)",
        r"\1 is no class and no function; give one of these",
    ),
    (r"Unexpected import object .* value: (\S+)", r"\1 is no class and no function; give one of these"),
    (r"Expected an instantiatable class, but ([\w.]+) is abstract", r"\1 is abstract, name a class of its kind"),
)


class MistakeWithin(argparse.ArgumentError):
    """A mistake in an option of a class, with the names of the options that the class has."""

    def __init__(self, message: str, known: Sequence[str]) -> None:
        super().__init__(None, message)
        self.known = known


def describe(message: str, within: Sequence[MistakeWithin], given: Sequence[str], known: Sequence[str]) -> str:
    """Say a mistake in one line that begins with the whole name of its option.

    Args:
        message: What the parser of the command says.
        within: What the parsers of classes said, from the outermost to the innermost.
        given: The options as they were given.
        known: The names of all options of the command.
    """
    texts = [" ".join(text.split()) for text in (message, *map(str, within))]
    if broken := BROKEN.fullmatch(texts[0]):
        name = next((path for path in configs_of(given) if isinstance(_read(path), yaml.YAMLError)), "a file")
        return f"config: {name} cannot be read ({broken_yaml(broken[1])})"
    if empty := NO_VALUE.fullmatch(texts[0]):
        return _without_value(empty["name"], given)
    if texts[0].startswith("Unexpected config"):
        name = next((path for path in configs_of(given) if not isinstance(_read(path), dict)), "a file")
        return f"config: expected a mapping of options in {name}, such as 'data: ...'"
    classes = [found[1] or found[2] for text in texts if (found := CLASS.search(text))]
    given = [*given, *(each for path in configs_of(given) for each in _as_options(_read(path), classes))]
    path: list[str] = []
    for i, text in enumerate(texts):
        if key := KEY.match(text):
            path.append(key["key"])
            texts[i] = text[key.end() :]
    if asked := HELP.fullmatch(texts[-1]):
        name = ".".join((*path, asked["name"]))
        value = next((arg.partition("=")[2] for arg in given if arg.startswith(f"--{name}=")), "")
        return f"{name}: {_class_problem(asked['reason'], value) or _reason(asked['reason'])}"
    if unknown := UNKNOWN.match(texts[-1]):
        option = ".".join(part for part in (unknown["group"], unknown["name"]) if part)
        if option.partition(".")[0] == "init_arg":
            return ".".join((*path, option.partition(".")[0])) + ": there is no such key (closest: init_args)"
        close = _closest(option, within[-1].known if within else known)
        owner = next((found[1] or found[2] for text in texts[-2:-1] if (found := CLASS.search(text))), "")
        name = _as_given(".".join((*path, option)), "", given)
        reason = f"there is no such option{f' of {owner}' if owner else ''}"
        return f"{name}: {reason}" + _suggest(name.removesuffix(option) + close if close else "")
    if missing := REQUIRED.match(texts[-1]):
        path.append(missing["name"])
        hint = "; configuration files are given by --config" if not within and "config" in known else ""
        reason = f"it is required, and not given{'' if configs_of(given) else hint}"
    else:
        reason = _reason(texts[-1])
    name = _as_given(".".join(path), reason, given)
    if reason.endswith(", not null") and not any(arg.endswith(("=null", "=None")) for arg in given):
        reason = "it is required, and not given"
        # Of a mapping's classes, the one that lacks it is told by its class alone.
        home, _, last = name.rpartition(".")
        options = [arg[2:].partition("=") for arg in given]
        named = [at for at, _, value in options if value and classes and classes[-1].endswith(value)]
        name = next((f"{at}.{last}" for at in named if home in _shortened(at)), name)
    return ": ".join(part for part in (name, reason) if part)


def configs_of(given: Sequence[str]) -> list[str]:
    """Give the configuration files among the options, in order."""
    return [
        arg.removeprefix("--config=")
        for before, arg in pairwise(["", *find_configurations(given)])
        if before == "--config" or arg.startswith("--config=")
    ]


def _read(path: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Read a configuration; an error where it is none."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        return error


def _as_options(content: Any, classes: Sequence[str], name: str = "--") -> Iterator[str]:  # noqa: ANN401 - as above
    """Give a configuration as options would be written, without those of other classes."""
    if not isinstance(content, dict):
        yield f"{name}={content}"
    elif not classes or _last(str(content.get("class_path", classes[0]))) in map(_last, classes):
        for key, value in content.items():
            yield from _as_options(value, classes, f"{name}.{key}" if name != "--" else f"--{key}")


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _as_given(name: str, reason: str, options: Sequence[str]) -> str:
    """Complete an option's name by the one given: in a mapping of classes, only that tells which of them is meant."""
    fitting = []
    for arg in options:
        given, _, value = arg[2:].replace(".init_args.", ".").partition("=")
        said = value != "" and value in reason
        if name in _shortened(given)[:-1] or (said and given.startswith(f"{name}.")):
            fitting.append((not said, given))
    return min(fitting, key=lambda each: each[0])[1] if fitting else name


def _shortened(name: str) -> list[str]:
    """Leave out of an option's name each part in turn, but for the first."""
    parts = name.split(".")
    return [".".join(parts[:place] + parts[place + 1 :]) for place in range(1, len(parts))]


def _closest(name: str, known: Iterable[str]) -> str:
    """Give the known option whose name is closest, '' where none is close."""
    known = list(known)
    head, dot, rest = name.partition(".")
    heads = difflib.get_close_matches(head, {each.partition(".")[0] for each in known}, n=1)
    begin = [each for each in known if each.startswith(name)]
    close = difflib.get_close_matches(name, known, n=1) or begin[: len(begin) == 1]
    close = close or [f"{each}{dot}{rest}" for each in heads]
    return close[0] if close and close[0] != name else ""


def _without_value(name: str, given: Sequence[str]) -> str:
    """Say how the option is written that has no value; the parser knows only the first part of an option of a class."""
    name = next((arg[2:] for arg in given if "=" not in arg and f"{arg}.".startswith(f"--{name}.")), name)
    if name.endswith(".help"):
        return f"{name}: name a class, written --{name}=CLASS; {LISTS}"
    return f"{name}: expected a value, written --{name}=VALUE"


def _suggest(close: str) -> str:
    return f" (closest: {close})" if close else ""


def _reason(text: str) -> str:
    """Say in words what jsonargparse says in Python's types."""
    for pattern, words in WHOLE:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, words, text)
    if file := BROKEN_FILE.search(text):
        return f"{file[1]} cannot be read ({broken_yaml(file[2])})"
    if (broken := broken_yaml(text)) != text:
        return broken
    union = UNION.fullmatch(text)
    errors = union["errors"] if union else re.sub(r"^- Expected a path but .*? - ", "", text)
    given = union["value"] if union else ""
    choices: list[str] = []
    kinds: list[str] = []
    for error in re.split(
        r"(?:^| )- (?=Expected |Unexpected |Not a |Not of type |Option |Problem |Import |Type |Does )", errors
    ):
        named = CLASS.match(error)
        error = CALLABLE.sub("", CLASS.sub("", error, count=1))
        if found := _class_problem(error, named[1] if named else given):
            return found
        if own := re.fullmatch(r"Not of type \w+: ('.*)", error):
            return own[1]
        error, _, value = re.sub(" Subclass types expect one of: .*", "", error).partition(". Got value: ")
        given = given or value
        if literals := re.fullmatch(r"Expected a typing\.Literal\[(.*)\]", error):
            choices += [choice.strip("'") for choice in literals[1].split(", ")]
        else:
            kind, value = _expected(error)
            kinds.append(kind)
            given = given or value
    kinds += [f"one of {', '.join(dict.fromkeys(choices))}"] if choices else []
    words = " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    given = "null" if given in ("None", "NoneType") else given
    return f"expected {words}, not {given}" if given else words


def _class_problem(error: str, given: str) -> str:
    """Say what is wrong with a class that was given by its import path, '' where that is not the mistake."""
    if found := re.match(r"module '([\w.]+)' has no attribute '(\w+)'", error):
        module, name = found.groups()
        loaded = importlib.import_module(module)
        close = difflib.get_close_matches(name, getattr(loaded, "__all__", dir(loaded)), n=1)
        return f"there is no {module}.{name}" + _suggest(f"{module}.{close[0]}" if close else "")
    if found := re.match(r"No module named '([\w.]+)'", error):
        ours = _suggest(_exported(given.rpartition(".")[2])) if found[1] in OWN else ""
        return f"{given} cannot be imported: no module {found[1]!r} is installed or in this folder{ours}"
    if found := re.match(r"(.+ \(\S+\.py, line \d+\))", error):  # of a syntax error
        return f"{given} cannot be imported: {found[1]}"
    if found := re.match(r"Import path ?([\w.]*) does not correspond to a subclass of (\w+)", error):
        return f"{found[1] or given} is no {found[2]}"
    for pattern, words in OF_CLASSES:
        if found := re.match(pattern, error):
            return found.expand(words)
    return "name a class before its options" if re.match(r"Option '\w+' is not accepted", error) else ""


def _expected(error: str) -> tuple[str, str]:
    """Give what is expected in place of a value, and the value where it is said."""
    if kind := re.fullmatch(r"Expected an? <class '([\w.]+)'>", error):
        return WORDS.get(kind[1], kind[1]), ""
    error = error.removesuffix(" not a number")
    if kind := re.fullmatch(
        r"Not of type (\w+): (?:(.*?) ?does not conform to restriction (.*)|.*?'?([^']*)'?)", error
    ):
        restriction = f" ({kind[3]})" if kind[3] else ""
        return WORDS.get(kind[1], f"a {kind[1]}{restriction}"), kind[2] or kind[4]
    if kind := re.match(r"Expected a tuple with (\d+) elements", error):
        return f"a list of {kind[1]}, written '[a, b, ...]'", ""
    if error == "Expected an import path or a subclass spec, but got None":
        return "a class by its import path", ""
    if path := re.fullmatch(r"(?:Expected a dot import path string|Unexpected import path format): (.*)", error):
        return "a class by its import path" + _suggest(_exported(path[1])), path[1]
    if kind := re.match(r"Not a valid subclass of (\w+)", error):
        return f"a {kind[1]} by its import path", ""
    return error, ""


def _exported(name: str) -> str:
    """Give the import path of what the suite's packages export by the closest name, '' where that cannot be made."""
    ours = [package for name, package in sys.modules.items() if re.fullmatch(r"headstart\.\w+", name)]
    homes = {each: package for package in ours for each in getattr(package, "__all__", [])}
    close = [
        each for each in difflib.get_close_matches(name, homes, n=1) if not _is_abstract(getattr(homes[each], each))
    ]
    return f"{homes[close[0]].__name__}.{close[0]}" if close else ""


def _is_abstract(kind: Any) -> bool:  # noqa: ANN401 - a class, or a function
    """Tell whether a class leaves a method to the classes of its kind, whether or not Python lets it be made."""
    return any(getattr(getattr(kind, name, None), "__isabstractmethod__", False) for name in dir(kind))

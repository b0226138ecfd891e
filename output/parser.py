"""A parser whose errors are one line, for the user's mistakes."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import jsonargparse

from output.errors import UserError

# The module of Lightning's class for the user's mistakes, and its name there.
LIGHTNINGS = ("lightning.fabric.utilities.exceptions", "MisconfigurationException")
INTERRUPTED = 130

QUOTE = "'"
WORDS = {
    "NoneType": "null",
    "bool": "true or false",
    "dict": "a mapping, written '{a: b}'",
    "float": "a number",
    "int": "a whole number",
    "list": "a list, written '[a, b]'",
    "str": "a text",
    "tuple": "a list, written '[a, b]'",
}
# What a type of ours says about a value, which it begins with.
OWN = r"(?P<place>Parser key \S+: ).*?Not of type \w+: (?P<text>'.*?)(?= - (?:Expected|Not of type) | Given value|$)"
# How jsonargparse reports a value that is of none of several types; errors of classes take another form.
UNION = (
    r"(?P<place>.*)Does not validate against any of the Union subtypes Subtypes: .* "
    r"Errors: - (?P<errors>(?:Expected|Not of type) .*) Given value type: <class '\w+'> Given value: (?P<value>.*)"
)


class OneLineErrorParser(jsonargparse.ArgumentParser):
    """Prints the error alone, with the closest option where one was misspelt, instead of the whole usage."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that is unique today is another option's prefix tomorrow.
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print one line and exit with code 2.

        Args:
            message: What is wrong.
            ex: The exception behind it.
        """
        lines = [line.strip() for line in str(message).splitlines()]
        text = re.sub(r"\s+", " ", " ".join(line for line in lines if line))
        fail(_plain(text) + self._closest(text), code=2)

    def _closest(self, message: str) -> str:
        """Suggest an option for the one that the message names."""
        named = re.search(r"(?:Group '([\w.]+)' .*)?(?:Option|option|arguments:|Key|key) '?-*([\w.]+)", message)
        if named is None or "(closest: " in message:
            return ""
        option = ".".join(part for part in named.groups() if part)
        known = [str(key) for key in self.get_defaults(skip_validation=True).keys()]  # noqa: SIM118 - a namespace iterates over nothing else
        close = difflib.get_close_matches(option, known, n=1)
        return f" (closest: {close[0]})" if close and close[0] != option else ""


def _plain(message: str) -> str:
    """Say in words what jsonargparse says in Python's types."""
    message = re.sub(
        r"typing\.Literal\[(.*?)\](?=\.? |$)", lambda choices: f"one of {choices[1].replace(QUOTE, '')}", message
    )
    message = re.sub(r"Expected (?:an? )?(one of|<class '(\w+)'>)", _expected, message)
    own = re.match(OWN, message)
    if own is not None:
        return own["place"] + own["text"]
    union = re.fullmatch(UNION, message)
    if union is None:
        return message.replace(". Got value: ", ". Given value: ")
    expected = [_alternative(error) for error in re.split(r" - (?=Expected |Not of type )", union["errors"])]
    named = [alternative for alternative in expected if alternative != "null"]
    return f"{union['place']}Expected {' or '.join(named)}. Given value: {union['value']}"


def _expected(found: re.Match[str]) -> str:
    kind = found[2]
    return f"Expected {found[1] if kind is None else WORDS.get(kind, kind)}"


def _alternative(error: str) -> str:
    """Shorten what jsonargparse says about one of several types."""
    error = re.sub(r"^Not of type (\w+): .*restriction (.*)$", r"a \1 (\2)", error)
    error = re.sub(r"^Not of type (\w+): .*$", r"a \1", error)
    return re.sub(r"\. Got value: (.*)$", r" in place of \1", error.removeprefix("Expected "))


def fail(message: str, code: int) -> NoReturn:
    """Print one line to the error stream and exit.

    Args:
        message: What is wrong and how to mend it.
        code: The exit code.
    """
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a user's mistake that is found while running into one line and exit code 1, and Ctrl-C into code 130."""
    try:
        yield
    except Exception as error:
        mistake = _find_mistake(error)
        if mistake is None:
            raise
        fail(str(mistake), code=1)
    except KeyboardInterrupt:
        fail("interrupted", code=INTERRUPTED)


def _mistakes() -> tuple[type[Exception], ...]:
    """Give the classes of a user's mistakes, without importing Lightning: before that is done, it has raised none."""
    module, name = LIGHTNINGS
    return (UserError, getattr(sys.modules[module], name)) if module in sys.modules else (UserError,)


def _find_mistake(error: BaseException | None) -> BaseException | None:
    """Find a user's mistake behind an error: the parser wraps what is raised while it builds objects."""
    while error is not None and not isinstance(error, _mistakes()):
        error = error.__cause__
    return error
